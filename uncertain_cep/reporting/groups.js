"use strict";
// Did it happen? How likely each group has a match, its best matches on demand, and key by time: the groups of
// RETURN PROBABILITY, or the matches of another query that share all events but one.
function drawGroups(tools, facts, groups, found, box, totalsBox, choose) {
  const { make, fill, whole, amount, count, percent, percentOf, when, length, shown, timeline, keyOf, factors, tableOf, graphOf, typeOf, asTable } = tools;
  const PAGE = groups.over ? 10 : 25, BEST = 3, ID = 24, ROWS = 30, COLUMNS = 60, LIKELY = 0.5;
  const rows = groups.lower.length, events = facts.events;
  const timed = groups.bucket !== null;
  const confidence = (found.columns.find((one) => one.name === "confidence") || { values: [] }).values;
  const ends = ["range_lower", "range_upper"].map((name) => (found.columns.find((one) => one.name === name) || { values: [] }).values);
  const what = groups.at_least === 1 ? "a match" : `at least ${groups.at_least} matches`;
  const membersOf = (r, letters) => {
    const [members] = found.drawn[ofKey.get(groups.key[r])[0]], place = members[0][1];
    const lane = facts.events.attributes.find((one) => one.name === facts.lane);
    const names = members.filter(([variable]) => variable !== groups.over).map(([variable, at]) => `${variable} ${typeOf(at)} ${tools.cut(String(events.id[at]), letters)}`);
    return [...(lane && groups.keys.some((key) => key.name === facts.lane) ? [String(lane.values[place])] : []), ...names].join(", ");
  };
  const nameOf = (r, letters) => (groups.over ? membersOf(r, letters) : groups.keys.map((key) => shown({}, key.values[r]) || (key.values[r] === null ? "null" : "")).join(", "));
  const bucketOf = (r) => when(groups.bucket[r]);
  const called = (r, letters = Infinity) => [groups.keys.length ? nameOf(r, letters) : "", timed ? `from ${bucketOf(r)}` : ""].filter((part) => part).join(", ") || "all matches";
  const low = (r) => groups.lower[r], high = (r) => groups.upper[r];
  const exact = (r) => high(r) - low(r) <= 1e-9;
  const sure = (r) => percentOf(low(r), high(r));
  const every = Array.from({ length: rows }, (_, r) => r);
  const ofKey = new Map();
  groups.of_match.forEach((key, i) => ofKey.set(key, [...(ofKey.get(key) || []), i]));
  const within = (r, i) => !timed || (ends[0][i] < groups.bucket[r] + groups.every && ends[1][i] >= groups.bucket[r]);
  // Matches that may begin in a bucket: those that are possible then.
  const matchesOf = (r) => (ofKey.get(groups.key[r]) || []).filter((i) => within(r, i));

  // --- all groups in one bar ------------------------------------------------------------------------
  function totals() {
    const certain = every.filter((r) => low(r) >= facts.certain_from).length;
    const likely = every.filter((r) => low(r) >= LIKELY).length - certain;
    const unlikely = every.filter((r) => high(r) < LIKELY).length;
    const parts = [["certain", certain, "certain"], ["likely", likely, "50% or more"], ["possible", unlikely, "less than 50%"], ["undecided", rows - certain - likely - unlikely, "not decided"]];
    const things = groups.keys.length || timed ? [rows === 1 ? "group" : "groups", `may have ${what}`] : null;
    if (!rows) {
      totalsBox.append(make("div", { class: "big" }, "0%"), make("p", {}, `Nothing has ${what} in any possible world.`), make("p", { class: "note" }, facts.nothing));
      return;
    }
    const expected = [low, high].map((end) => every.reduce((sum, r) => sum + end(r), 0));
    const ends = expected.map(amount), sum = ends[0] === ends[1] ? ends[0] : ends.join(" to ");
    if (!things) {
      totalsBox.append(make("div", { class: "big" }, sure(0), " ", make("small", {}, `that there is ${what}`)), make("p", {}, `${count(facts.totals.matches, "possible match", "possible matches")}.`));
      return;
    }
    fill(totalsBox, {}, [
      make("div", { class: "big" }, whole(rows), " ", make("small", {}, things.join(" "))),
      make("div", { class: "split", role: "img", "aria-label": parts.map(([, n, label]) => `${n} ${label}`).join(", ") },
        parts.filter(([, n]) => n).map(([kind, n]) => make("i", { class: kind, style: `flex:${n}` }))),
      make("ul", { class: "legend" }, parts.filter(([, n]) => n).map(([kind, n, label]) => make("li", {}, make("i", { class: kind }), `${whole(n)} ${label}`))),
      make("p", {}, "On average ", make("b", {}, sum), ` of them ${sum === "1" ? "has" : "have"} ${what}, out of ${count(facts.totals.matches, "possible match", "possible matches")}.`),
    ]);
  }

  // --- one bar a group ------------------------------------------------------------------------------
  const state = { page: 0, text: "", open: new Set() };
  const list = make("div", { class: "groups", role: "list" });
  const info = make("span", { class: "note", "aria-live": "polite" });
  const back = make("button", { type: "button", onclick: () => turn(-1) }, "Previous");
  const forth = make("button", { type: "button", onclick: () => turn(1) }, "Next");
  const search = make("input", { type: "search", placeholder: "Search groups", "aria-label": "Search groups", oninput: () => { state.text = search.value.toLowerCase(); state.page = 0; render(); } });
  function turn(by) { state.page += by; render(); box.scrollIntoView({ block: "start" }); }
  function parts(r) {
    const own = matchesOf(r).map((i) => confidence[i]);
    const certain = own.filter((p) => p >= facts.certain_from).length, likely = own.filter((p) => p >= LIKELY).length - certain;
    return [["certain", certain, "certain"], ["likely", likely, "50% or more"], ["possible", own.length - certain - likely, "less than 50%"]].filter(([, n]) => n);
  }
  function rowOf(r) {
    const key = groups.key[r], own = timed ? matchesOf(r).length : groups.matches[key];
    const detail = make("div", { class: "group-matches", hidden: true });
    const small = timed ? `${count(own, "match", "matches")} shown below may be then` : `${count(own, "possible match", "possible matches")}, the best ${percent(groups.best[key])}, ${amount(groups.expected[key])} expected`;
    const head = make("button", { type: "button", class: "group", "aria-expanded": "false", "aria-label": `${called(r)}: ${sure(r)}; ${small}` },
      make("span", { class: "name", title: called(r) }, called(r, ID)),
      make("span", { class: "meter" }, make("i", { class: "certain", style: `width:${100 * low(r)}%` }), exact(r) ? null : make("i", { class: "between", style: `width:${100 * (high(r) - low(r))}%` })),
      make("b", {}, sure(r)),
      make("span", { class: "note" }, small),
      groups.decides[r] ? make("span", { class: "note decides" }, groups.decides[r]) : null,
      make("span", { class: "split" }, parts(r).map(([kind, n, label]) => make("i", { class: kind, style: `flex:${n}`, title: `${whole(n)} ${label}` }))));
    head.addEventListener("click", () => {
      const opens = detail.hidden;
      detail.hidden = !opens;
      head.setAttribute("aria-expanded", String(opens));
      if (opens && !detail.childNodes.length) open(r, detail);
    });
    return make("div", { role: "listitem" }, head, detail);
  }
  function open(r, detail) {
    const own = matchesOf(r).sort((a, b) => confidence[b] - confidence[a] || a - b);
    if (!own.length) return detail.append(make("p", { class: "note" }, "None of its matches is among the best that this page has."));
    detail.append(...own.slice(0, BEST).map((i) => make("figure", {}, make("figcaption", {}, `${percent(confidence[i])}, ${when(ends[0][i])} to ${when(ends[1][i])}`), timeline(found, i, box), factors(found, i), tableOf(found, i))));
    detail.append(keyOf(found, own[0]));
    fill(detail, {}, [graphOf(own.flatMap((i) => found.drawn[i][0].map(([variable, place]) => [place, variable])))]);
    if (own.length > 1) detail.append(make("button", { type: "button", onclick: () => choose(r) }, `All ${whole(own.length)} in the table`));
  }
  function render() {
    const chosen = state.text ? every.filter((r) => called(r).toLowerCase().includes(state.text)) : every;
    const pages = Math.max(Math.ceil(chosen.length / PAGE), 1);
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const part = chosen.slice(state.page * PAGE, state.page * PAGE + PAGE);
    list.replaceChildren(...part.map(rowOf));
    info.textContent = chosen.length ? `${whole(state.page * PAGE + 1)} to ${whole(state.page * PAGE + part.length)} of ${whole(chosen.length)}` : "No group is called so.";
    back.hidden = forth.hidden = pages === 1;
    back.disabled = state.page === 0;
    forth.disabled = state.page >= pages - 1;
  }

  // --- key by time ----------------------------------------------------------------------------------
  function keyByTime() {
    const first = groups.bucket.reduce((a, b) => Math.min(a, b), Infinity), last = groups.bucket.reduce((a, b) => Math.max(a, b), -Infinity);
    const buckets = Math.round((last - first) / groups.every) + 1, merged = Math.ceil(buckets / COLUMNS);
    const columns = Math.ceil(buckets / merged), best = new Map(), cells = new Map();
    every.forEach((r) => {
      const key = groups.key[r], k = Math.floor(Math.round((groups.bucket[r] - first) / groups.every) / merged);
      const row = cells.get(key) || cells.set(key, new Map()).get(key);
      if (!row.has(k) || high(r) > high(row.get(k))) row.set(k, r);
      best.set(key, Math.max(best.get(key) || 0, high(r)));
    });
    const order = [...cells.keys()].sort((a, b) => best.get(b) - best.get(a) || a - b), drawn = order.slice(0, ROWS);
    const width = Math.min(Math.max(box.clientWidth - 40, 260), 1080);
    const rowOfKey = (key) => {
      const own = [...cells.get(key)];
      return [groups.keys.length ? nameOf(own[0][1]) : "", own.map(([k, r]) => [k, high(r), `${called(r)}: ${sure(r)}`, () => choose(r)])];
    };
    const picture = tools.heatMap("Probability by key and time", width, drawn.map(rowOfKey), columns, [first, first + columns * merged * groups.every]);
    const rest = order.length - drawn.length;
    const note = `Each cell is ${length(groups.every)}; the fuller, the likelier.` + (merged > 1 ? ` Of ${merged} neighbours the likeliest is shown.` : "") + (rest > 0 ? ` ${count(rest, "key", "keys")} more.` : "");
    const lines = () => every.map((r) => [groups.keys.length ? nameOf(r) : "all", bucketOf(r), sure(r)]);
    return [make("h3", {}, "Key by time"), make("p", { class: "note" }, note), picture, asTable(["key", "from", "probability"], lines)];
  }

  // How the page names a group, and which matches it has.
  const drawn = { rows: every, called, has: (r, i) => groups.of_match[i] === groups.key[r] && within(r, i) };
  if (groups.over) {
    box.setAttribute("aria-label", "Matches that share events");
    const likely = every.filter((r) => low(r) >= LIKELY).length;
    const others = groups.total - rows;
    box.append(make("h2", {}, "Matches that share events"),
      make("p", { class: "note" }, `${count(groups.total, "group", "groups")}: all matches of a group have the same events but ${groups.over}. The bar says how likely there is at least one of them${facts.chosen.length ? `, without ${facts.chosen.join(" and ")}` : ""}; ${whole(likely)} of ${whole(rows)} are likely.${others > 0 ? ` ${count(others, "group has", "groups have")} no match among the best that this page has.` : ""} A row opens its best matches.`));
    box.append(make("div", { class: "controls" }, search), list, make("div", { class: "pages" }, back, forth, info));
    render();
    return drawn;
  }
  totals();
  if (!rows || (!groups.keys.length && !timed)) {
    box.remove();
    return drawn;
  }
  const open_ = every.some((r) => !exact(r));
  box.append(make("h2", {}, "Did it happen?"),
    make("p", { class: "note" }, `How likely each has ${what}, whatever events its matches share. A row opens its best matches; its thin bar says how sure these are.${open_ ? " Where a bar ends pale, the probability would take too long: it is between both ends." : ""}`));
  if (timed) box.append(...keyByTime());
  box.append(make("div", { class: "controls" }, search), list, make("div", { class: "pages" }, back, forth, info));
  render();
  return drawn;
}

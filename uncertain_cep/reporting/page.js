(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const facts = await new Response(stream).json();
  const PAGE = 50, NARROWEST = 260, GAP = 16;

  const tools = makeTools(facts);
  const { make, draw, fill, byId, whole, amount, count, cut, clock, time, length, percent, percentOf, chance, stamped, axis, pressed, heatMap, oneStop, asTable } = tools;

  // --- the sets of matches --------------------------------------------------------------------------
  const events = facts.events;
  const typeOf = (place) => events.type[place];
  const stampOf = (place) => events.stamp[place] ?? events.lower[place] + Math.floor((events.upper[place] - events.lower[place]) / 2);
  const spanOf = (place) => (events.spans ? events.spans[place] : null);
  const column = (set, name) => (set.columns.find((c) => c.name === name) || { values: [] }).values;
  const sets = { found: { columns: facts.columns, drawn: facts.found_drawn, nearby: facts.found_nearby, why: facts.found_why, compared: facts.compared } };
  for (const name of ["missed", "invented"]) if (facts[name]) sets[name] = { columns: facts[name], drawn: facts[`${name}_drawn`], nearby: facts[`${name}_nearby`], why: facts[`${name}_why`] };
  const found = sets.found;
  // Where the times of the page are of several days, each is told with its day.
  const ends = [...events.lower, ...events.upper, ...Object.values(sets).flatMap((set) => [...column(set, "range_lower"), ...column(set, "range_upper")])];
  const [earliest, latest] = ends.reduce(([low, high], at) => [Math.min(low, at), Math.max(high, at)], [Infinity, -Infinity]);
  const days = stamped && ends.length > 0 && time(earliest, true).slice(0, 10) !== time(latest, true).slice(0, 10);
  const when = (tick) => time(tick, days);
  const size = (set) => (set.columns.length ? set.columns[0].values.length : 0);

  // Without stamps, the answer is compared with that at the middle of each interval.
  const basis = facts.raw.stamped === 0
    ? {
      name: "interval middles", short: "the middles", suppose: "Had each event happened in the middle of its interval",
      same: "has the same middle as", before: "has its middle before",
      misfit: "In the middle of their intervals these events do not fit the pattern.", fit: "In the middle of their intervals these events match.",
    }
    : {
      name: "raw stamps", short: "raw", suppose: "Had the stamps been taken at their word",
      same: "has the very stamp of", before: "is stamped before",
      misfit: "Taken at their word, the stamps do not fit the pattern.", fit: "By their stamps these events match.",
    };
  const kinds = { found: "All", missed: `Missed by ${basis.name}`, invented: `Invented by ${basis.name}` };

  // --- a match as a drawing -------------------------------------------------------------------------
  Object.assign(tools, { when, column, typeOf, stampOf, spanOf });
  const timeline = makeLanes(tools, facts, sets);
  const graphOf = makeOrders(tools, facts);
  const orderOf = (set, n) => graphOf([...set.drawn[n][0].map(([variable, place]) => [place, variable]), ...set.drawn[n][1].map((place) => [place, "could spoil"])]);
  function keyOf(set, n) {
    const parts = [];
    const has = set.drawn[n][0].some(([, place]) => events.stamp[place] !== null);
    const filled = set.drawn[n][0].some(([, , shades]) => shades);
    const drawn = [...set.drawn[n][0].map(([, place]) => place), ...set.drawn[n][1]];
    if (!drawn.every(spanOf)) parts.push(make("span", {}, `Frames: when an event can have happened${filled ? "; the higher one is filled, the likelier then, if this is a match" : ""}.`));
    if (drawn.some(spanOf)) parts.push(make("span", {}, " Pointed bars: events that last; each begins and ends somewhere on its slopes."));
    if (has) parts.push(make("span", {}, " ◆ its stamp."));
    if (set.drawn[n][1].length) parts.push(make("span", {}, " Orange: events that could spoil it, where the query forbids them."));
    parts.push(...oneClock(set.drawn[n][0]).map((said) => make("span", {}, said)));
    return make("p", { class: "note" }, parts);
  }
  function oneClock(own) {
    const clocks = new Map();
    for (const [variable, place] of own) {
      const clock = events.clock[place];
      if (clock !== null) clocks.set(clock, [...(clocks.get(clock) || []), { variable, place }]);
    }
    return [...clocks].filter(([, of]) => of.length > 1).map(([clock, of]) =>
      ` ${of.map((one) => one.variable).join(", ")}: same clock, ${clock}${of.every((one) => events.read[one.place]) ? ", certain order" : ""}.`);
  }

  // --- the answer -----------------------------------------------------------------------------------
  function totals() {
    const { matches, expected, certain, likely, possible } = facts.totals;
    const parts = [["certain", certain, "certain"], ["likely", likely, "50% or more"], ["possible", possible, "less than 50%"]];
    const box = byId("totals");
    box.append(make("div", { class: "big" }, whole(matches), " ", make("small", {}, matches === 1 ? "possible match" : "possible matches")));
    if (!matches) return fill(box, {}, [make("p", {}, "No events match in any possible world."), make("p", { class: "note" }, facts.nothing)]);
    fill(box, {}, [
      make("div", { class: "split", role: "img", "aria-label": parts.map(([, n, label]) => `${n} ${label}`).join(", ") },
        parts.filter(([, n]) => n).map(([kind, n]) => make("i", { class: kind, style: `flex:${n}` }))),
      make("ul", { class: "legend" }, parts.filter(([, n]) => n).map(([kind, n, label]) => make("li", {}, make("i", { class: kind }), `${whole(n)} ${label}`))),
      facts.limit === matches ? make("p", { class: "note" }, "The query asks for no more.") : null,
      make("p", {}, certain === matches ? `${matches === 1 ? "It" : "All of them"} happened for certain.` : matches === 1 ? ["It happened with probability ", make("b", {}, percent(expected)), "."] : ["On average ", make("b", {}, amount(expected)), " of them happened."]),
      facts.shared ? make("p", {}, "In ", make("b", {}, count(facts.shared.total, "group", "groups")), ` they share all events but ${facts.shared.over}.`) : null,
    ]);
    box.append(verdict());
  }
  function verdict() {
    const raw = facts.raw;
    const said = make("div", { class: "verdict" });
    const unchosen = facts.chosen.length ? `, without ${facts.chosen.join(" and ")},` : "";
    if (events.spans) said.append(make("p", { class: "note" }, "Of events that last there is no comparison with raw stamps."));
    else if (raw.matches === null) said.append(make("p", { class: "note" }, "There are too many matches to compare with those on raw stamps."));
    else if (!raw.missed && !raw.invented) said.append(make("p", {}, `On ${basis.name}${unchosen} there ${raw.matches === 1 ? "is" : "are"} ${count(raw.matches, "match", "matches")}: none is impossible, and none that is likely is missing.`));
    else
      said.append(
        make("h3", {}, `${basis.suppose}${unchosen.replace(/,$/, "")}`),
        make("p", {}, make("b", { class: "missed" }, whole(raw.missed)), ` likely ${raw.missed === 1 ? "match" : "matches"} would have been missed, and `,
          make("b", { class: "invented" }, whole(raw.invented)), ` of ${whole(raw.matches)} found would be impossible.`),
      );
    return said;
  }
  function why(set, n) {
    const order = set.drawn[n][0];
    const p = column(set, "confidence")[n];
    const each = order.map(([variable, place]) => ({ variable, place, at: stampOf(place) }));
    const turned = each.findIndex((one, k) => k && one.at <= each[k - 1].at);
    const named = (one) => `${typeOf(one.place)} ${one.variable}`;
    if (set === sets.missed && turned > 0) {
      const [first, second] = [each[turned - 1], each[turned]];
      const relation = first.at === second.at ? basis.same : basis.before;
      return [make("b", {}, `${kinds.missed}. `), `${named(second)} ${relation} ${named(first)}, which the pattern asks for first. But neither time is exact: with probability `, make("b", {}, chance(p)), " they happened in the right order."];
    }
    if (set === sets.missed) return [make("b", {}, `${kinds.missed}. `), `${basis.misfit} Given how uncertain the times are, it matched with probability `, make("b", {}, chance(p)), "."];
    if (set === sets.invented) return [make("b", { class: "invented" }, `${kinds.invented}. `), `${basis.fit} Their times cannot have been so.`];
    const happened = p >= facts.certain_from ? "for certain" : make("span", {}, "with probability ", make("b", {}, chance(p)));
    return ["The likeliest match: it happened ", happened, ", and only within the shaded time."];
  }
  function example() {
    const name = sets.missed && size(sets.missed) ? "missed" : size(found) ? "found" : sets.invented && size(sets.invented) ? "invented" : null;
    const box = byId("example");
    if (name === null) return box.remove();
    const set = sets[name];
    box.append(make("h2", {}, name === "found" ? "One of the matches" : "Why intervals matter"), make("p", { class: "why" }, why(set, 0)), timeline(set, 0, box), keyOf(set, 0));
    fill(box, {}, [factors(set, 0), orderOf(set, 0), tableOf(set, 0)]);
  }
  function tableOf(set, n) { return make("details", { class: "factors" }, make("summary", {}, "The events as a table"), eventsOf(set, n)); }
  // The factors of a match: [what, given all before, all up to here].
  function factorsOf(set, n) {
    if (!set.factors) {
      set.factors = new Map();
      (set.why || []).forEach((group) => group.match.forEach((match, k) => set.factors.set(match, { group, k })));
    }
    const entry = set.factors.get(n);
    if (!entry) return [];
    const products = [...entry.group.product.map((row) => row[entry.k]), column(set, "confidence")[n]];
    return entry.group.what.map((what, k) => [what, k ? products[k] / products[k - 1] : products[0], products[k]]);
  }
  // Each bar is as long as all up to it is likely; its pale part is what it takes off.
  function factors(set, n) {
    let before = 1;
    const rows = factorsOf(set, n).map(([what, probability, product]) => {
      const row = make("tr", {}, make("th", { scope: "row" }, what), make("td", { class: "number" }, percent(probability)),
        make("td", { class: "fall" }, make("span", { class: "meter" }, make("i", { class: "certain", style: `width:${100 * product}%` }), make("i", { class: "between", style: `width:${100 * Math.max(before - product, 0)}%` }))),
        make("td", { class: "number" }, percent(product)));
      before = product;
      return row;
    });
    if (!rows.length) return null;
    return make("details", { class: "factors" }, make("summary", {}, `Why ${percent(column(set, "confidence")[n])}?`),
      make("p", { class: "note" }, "Each given all above it: they multiply up. The bar is how likely all up to here is."),
      make("div", { class: "scroll" }, make("table", {}, make("thead", { class: "visually-hidden" }, make("tr", {}, ["what", "probability", "", "together"].map((one) => make("th", { scope: "col" }, one)))), make("tbody", {}, rows))));
  }

  // --- charts that filter ---------------------------------------------------------------------------
  const filters = {};
  const state = { set: "found", sort: "confidence", down: true, page: 0, least: 0, text: "", open: new Set() };
  // Each kind of filter, by what a link says of it: which filter it replaces, its name, and the matches that it keeps.
  const isColumn = (name) => found.columns.some((one) => one.name === name);
  const isPlace = (k, values) => Number.isInteger(k) && k >= 0 && k < values.length;
  const named = (name, value) => `${name} ${value === null ? "null" : value}`;
  const kindsOfFilters = {
    key: (name, value) => isColumn(name) && [name, named(name, value), (i) => column(found, name)[i] === value],
    sure: (k) => isPlace(k, facts.histogram) && ["sure", `probability ${within(k)}`, (i) => barOf(column(found, "confidence")[i]) === k],
    when: (k) => facts.moments && isPlace(k, facts.moments.expected) && ["when", `from ${time(begin(k), true)}`, (i) => isIn(i, k)],
    at: (name, value, k) => isColumn(name) && facts.moments && isPlace(k, facts.moments.expected) &&
      [name, `${named(name, value)} from ${when(begin(k))}`, (i) => column(found, name)[i] === value && isIn(i, k)],
    type: (name, type) => [`type of ${name}`, `type of ${name} ${type}`, (i) => found.drawn[i][0].some(([variable, place]) => variable === name && typeOf(place) === type)],
    group: (r) => groups && isPlace(r, groups.rows) && ["group", groups.called(r), (i) => groups.has(r, i)],
  };
  function filterOf(kind, args) {
    const filter = Array.isArray(args) && kindsOfFilters[kind](...args);
    return filter && { name: filter[0], label: filter[1], value: filter[2], kind, args };
  }
  function choose(kind, ...args) {
    const filter = filterOf(kind, args), now = filters[filter.name];
    if (now && now.label === filter.label) delete filters[filter.name];
    else filters[filter.name] = filter;
    state.page = 0;
    show("found");
  }
  // Charts are drawn once all panels are there, as wide as these, so that letters are as large everywhere.
  function chart(title, note, drawn, heads, lines) {
    const panel = make("div", { class: "panel" }, make("h2", {}, title), make("p", { class: "note" }, note));
    return { panel, drawn, table: asTable(heads, lines) };
  }
  function bars({ title, note, values, label, bottom, action, heads, lines }) {
    return chart(title, note, (width) => {
      const height = 132, most = Math.max(...values, 1e-9), wide = width / values.length;
      const picture = draw("svg", { viewBox: `0 0 ${width} ${height + 20}`, role: "group", "aria-label": title });
      // The tallest bar has its number: the others are read beside it.
      const number = amount(most), half = 3.4 * number.length;
      picture.append(draw("text", { class: "dim", x: Math.min(Math.max((values.indexOf(most) + 0.5) * wide, half), width - half), y: 11, "text-anchor": "middle" }, number));
      const drawn = values.map((value, k) => {
        const tall = value ? Math.max((value / most) * (height - 18), 2) : 0;
        return [k, draw("rect", { class: "bar", x: k * wide + 1, width: Math.max(wide - 2, 1), y: height - tall, height: tall, rx: Math.min(2, wide / 4), "aria-label": label(k), ...(value ? pressed(() => action(k)) : {}) }, draw("title", {}, label(k)))];
      });
      picture.append(...drawn.map(([, bar]) => bar));
      oneStop([drawn.filter(([k]) => values[k])]);
      bottom(picture, width, height);
      return picture;
    }, heads, lines);
  }
  function shares(picture, width, height) {
    picture.append(draw("line", { class: "axis", x1: 0, x2: width, y1: height, y2: height }));
    for (const [at, text, anchor] of [[0, "0%", "start"], [0.5, "50%", "middle"], [1, "100%", "end"]])
      picture.append(draw("text", { class: "dim", x: at * width, y: height + 15, "text-anchor": anchor }, text));
  }
  const barOf = (p) => Math.min(Math.floor(p * facts.histogram.length + 1e-12), facts.histogram.length - 1);
  const within = (k) => `${Math.round((100 * k) / facts.histogram.length)} to ${Math.round((100 * (k + 1)) / facts.histogram.length)}%`;
  // Bars of time: a match is in that of the middle of its range.
  const begin = (k) => facts.moments.begin + k * facts.moments.width;
  function isIn(i, k) {
    const lower = column(found, "range_lower")[i], upper = column(found, "range_upper")[i];
    const middle = lower + Math.floor((upper - lower) / 2);
    return middle >= begin(k) && middle < begin(k + 1);
  }
  // One bar alone says nothing: a sentence does, if the first panel does not say so already.
  function howSure() {
    const { matches, certain } = facts.totals, all = column(found, "confidence");
    const same = all.length === matches && all.every((p) => percent(p) === percent(all[0]));
    const sure = certain === matches ? "is certain" : `has probability ${same ? percent(all[0]) : within(facts.histogram.findIndex((value) => value))}`;
    if (!facts.occurrences && (matches === 1 || certain === matches)) return [];
    return [{ panel: make("div", { class: "panel" }, make("h2", {}, "How sure?"), make("p", {}, `${matches === 1 ? "The match" : `Each of the ${whole(matches)} matches`} ${sure}.`)) }];
  }
  function charts() {
    const box = byId("charts");
    if (!facts.totals.matches) return box.remove();
    const panels = [], maps = [];
    const histogram = facts.histogram;
    panels.push(...histogram.filter((value) => value).length === 1 ? howSure() : [bars({
      title: "How sure?", note: "Matches by probability. A bar shows its matches in the table.", values: histogram, bottom: shares,
      label: (k) => `${within(k)}: ${count(histogram[k], "match", "matches")}`, action: (k) => choose("sure", k),
      heads: ["probability", "matches"], lines: () => histogram.map((value, k) => [within(k), whole(value)]),
    })]);
    const moments = facts.moments;
    if (moments.expected.length > 1) {
      const last = moments.expected.length;
      panels.push(bars({
        title: "When?", note: `Expected matches in each ${length(moments.width)}.`, values: moments.expected,
        bottom: (picture, width, height) => axis(picture, begin(0), begin(last), 0, width, width, height),
        label: (k) => `${time(begin(k), true)}: ${amount(moments.expected[k])} of ${count(moments.count[k], "match", "matches")}`, action: (k) => choose("when", k),
        heads: ["from", "expected", "matches"], lines: () => moments.expected.map((value, k) => [time(begin(k), true), amount(value), whole(moments.count[k])]),
      }));
    }
    if (facts.calibration) panels.push(calibrationPlot());
    const byKey = facts.groups.map((group) => ({ ...group, choice: (value) => ["key", group.name, value] }));
    for (const group of [...(facts.occurrences ? [] : byKey), ...byType()]) {
      if (group.cells) maps.push(keyByTime(group));
      if (group.values.every((one) => one.happened)) {
        panels.push(didItHappen(group));
        continue;
      }
      const most = Math.max(...group.values.map((one) => one.count));
      const step = 21, left = roomOf(group);
      const rows = (width) => {
        const picture = draw("svg", { viewBox: `0 0 ${width} ${group.values.length * step}`, role: "group", "aria-label": `Matches by ${group.name}` });
        oneStop(group.values.map((one, k) => {
          const shown = one.value === null ? "null" : String(one.value);
          const long = (part) => (part / most) * (width - left - 46);
          const said = `${shown}: ${count(one.count, "match", "matches")}, ${amount(one.expected)} expected`;
          const hit = draw("rect", { class: "hit", x: 0, y: k * step, width, height: step, "aria-label": said, ...pressed(() => choose(...group.choice(one.value))) }, draw("title", {}, said));
          picture.append(
            draw("text", { x: 0, y: k * step + 14 }, cut(shown, 18)),
            draw("rect", { class: "bar pale", x: left, y: k * step + 3, height: 14, width: Math.max(long(one.count), 2), rx: 2 }),
            draw("rect", { class: "bar", x: left, y: k * step + 3, height: 14, width: Math.max(long(one.expected), 1), rx: 2 }),
            draw("text", { class: "dim", x: left + long(one.count) + 6, y: k * step + 14 }, whole(one.count)),
            hit,
          );
          return [[0, hit]];
        }));
        return picture;
      };
      const more = group.distinct - group.values.length;
      const note = "Possible matches, and in full colour the expected ones." +
        (group.values.some((one) => one.happened === null) ? " How likely there is at least one was not computed." : "") +
        (more > 0 ? ` ${count(more, "value", "values")} more.` : "");
      panels.push(chart(`By ${group.name}`, note, rows, [group.name, "expected", "matches"], () => group.values.map((one) => [one.value === null ? "null" : String(one.value), amount(one.expected), whole(one.count)])));
    }
    box.append(...panels.map((one) => one.panel));
    if (!panels.length) box.remove();
    // As many in each row as there can be, but none alone in the last one.
    const fit = Math.max(Math.floor((box.clientWidth + GAP) / (NARROWEST + GAP)), 1), rowsOfPanels = Math.ceil(panels.length / fit);
    box.style.setProperty("--columns", Math.ceil(panels.length / rowsOfPanels));
    byId("maps").append(...maps.map((one) => one.panel));
    for (const { panel, drawn, table, most = 620 } of [...panels, ...maps].filter((one) => one.drawn)) {
      const width = Math.min(Math.max(panel.clientWidth - 2 * parseFloat(getComputedStyle(panel).paddingLeft), 240), most);
      panel.append(fill(drawn(width), { style: `max-width:${width}px` }, []), table);
    }
  }

  // The width of the names of values.
  const roomOf = (group) => Math.min(7 * Math.max(...group.values.map((one) => String(one.value).length)) + 12, 130);

  // Expected matches by value and bar of time.
  function keyByTime(group) {
    const most = Math.max(...group.cells.flat()), bars = facts.moments.expected.length, more = group.distinct - group.values.length;
    const rows = group.values.map((one, row) => {
      const name = one.value === null ? "null" : String(one.value);
      const cells = group.cells[row].map((expected, k) => [k, expected / most, `${name}, from ${when(begin(k))}: ${amount(expected)} expected`, () => choose("at", group.name, one.value, k)]);
      return [name, cells.filter(([, full]) => full)];
    });
    const note = `Expected matches in each ${length(facts.moments.width)}; the fuller, the more, up to ${amount(most)}.${more > 0 ? ` ${count(more, "value", "values")} more.` : ""}`;
    const title = `By ${group.name} and time`;
    const lines = () => rows.flatMap(([name, cells], row) => cells.map(([k]) => [name, when(begin(k)), amount(group.cells[row][k])]));
    return { ...chart(title, note, (width) => heatMap(title, width, rows, bars, [begin(0), begin(bars)]), [group.name, "from", "expected"], lines), most: 1100 };
  }

  // A point for each bin of what was said, with one standard error: on the dashed line as many happened.
  function calibrationPlot() {
    const share = (p) => (p === 0 ? "0%" : p === 1 ? "100%" : percent(p));
    const bins = facts.calibration.bins, most = Math.max(...bins.map((bin) => bin.answers));
    return chart("Did it happen as often as said?", facts.calibration.sentence, (width) => {
      const left = 40, top = 24, size = Math.min(width - left - 8, 240), base = top + size;
      const x = (p) => left + p * size, y = (p) => base - p * size;
      const picture = draw("svg", { viewBox: `0 0 ${width} ${base + 36}`, role: "group", "aria-label": "Share of answers that happened, by the probability that was said" });
      for (const p of [0, 0.5, 1]) picture.append(
        draw("line", { class: "axis", x1: left, x2: left + size, y1: y(p), y2: y(p) }),
        draw("text", { class: "dim", x: left - 6, y: y(p) + 4, "text-anchor": "end" }, `${100 * p}%`),
        draw("text", { class: "dim", x: x(p), y: base + 15, "text-anchor": "middle" }, `${100 * p}%`));
      picture.append(draw("text", { class: "dim", x: left + size / 2, y: base + 31, "text-anchor": "middle" }, "said"), draw("text", { class: "dim", x: 0, y: 11 }, "happened"),
        draw("line", { class: "diagonal", x1: x(0), x2: x(1), y1: y(0), y2: y(1) }));
      oneStop([bins.map((bin, k) => {
        const said = `Said ${share(bin.said)}, happened ${share(bin.happened)}: ${count(bin.answers, "answer", "answers")}, standard error ${+bin.std_error.toPrecision(3)}`;
        const [low, high] = [Math.max(bin.happened - bin.std_error, 0), Math.min(bin.happened + bin.std_error, 1)];
        const point = draw("circle", { class: "point", cx: x(bin.said), cy: y(bin.happened), r: 3 + 5 * Math.sqrt(bin.answers / most), role: "img", "aria-label": said }, draw("title", {}, said));
        picture.append(draw("line", { class: "whisker", x1: x(bin.said), x2: x(bin.said), y1: y(low), y2: y(high) }), point);
        return [k, point];
      })]);
      return picture;
    }, ["said", "happened", "standard error", "answers"], () => bins.map((bin) => [share(bin.said), share(bin.happened), String(+bin.std_error.toPrecision(3)), whole(bin.answers)]));
  }

  // How likely there is a match with each value. Of a group that would take too long, the bounds are shown.
  function didItHappen(group) {
    const step = 21, left = roomOf(group), more = group.distinct - group.values.length;
    const open = group.values.some((one) => one.happened[1] - one.happened[0] > 1e-9);
    const note = `How likely there is at least one match${facts.chosen.length ? `, without ${facts.chosen.join(" and ")}` : ""}.` +
      (open ? " Where a bar ends pale, the truth is between both ends." : "") + (more > 0 ? ` ${count(more, "value", "values")} more.` : "");
    return chart(`By ${group.name}: did it happen?`, note, (width) => {
      const picture = draw("svg", { viewBox: `0 0 ${width} ${group.values.length * step}`, role: "group", "aria-label": `By ${group.name}: did it happen?` });
      const room = 8 + 6.4 * Math.max(...group.values.map((one) => percentOf(...one.happened).length));
      const long = (p) => p * (width - left - room);
      oneStop(group.values.map((one, k) => {
        const name = one.value === null ? "null" : String(one.value), [low, high] = one.happened;
        const p = percentOf(low, high), said = `${name}: ${p}, ${count(one.count, "match", "matches")}`;
        const hit = draw("rect", { class: "hit", x: 0, y: k * step, width, height: step, "aria-label": said, ...pressed(() => choose("key", group.name, one.value)) }, draw("title", {}, said));
        picture.append(
          draw("text", { x: 0, y: k * step + 14 }, cut(name, 18)),
          draw("rect", { class: "track", x: left, y: k * step + 3, height: 14, width: long(1), rx: 2 }),
          draw("rect", { class: "bar pale", x: left, y: k * step + 3, height: 14, width: Math.max(long(high), 1), rx: 2 }),
          draw("rect", { class: "bar", x: left, y: k * step + 3, height: 14, width: Math.max(long(low), 1), rx: 2 }),
          draw("text", { class: "dim", x: width, y: k * step + 14, "text-anchor": "end" }, p),
          hit,
        );
        return [[0, hit]];
      }));
      return picture;
    }, [group.name, "probability", "matches"], () => group.values.map((one) => [one.value === null ? "null" : String(one.value), percentOf(...one.happened), whole(one.count)]));
  }

  function byType() {
    // Where a variable takes events of several types: which they are, in the matches of the table.
    return facts.variables.filter((one) => one.types.length !== 1).map((one) => {
      const typesOf = (i) => new Set(found.drawn[i][0].filter(([name]) => name === one.name).map(([, place]) => typeOf(place)));
      const kinds = new Map();
      column(found, "confidence").forEach((p, i) => typesOf(i).forEach((type) => {
        const [many, expected] = kinds.get(type) || [0, 0];
        kinds.set(type, [many + 1, expected + p]);
      }));
      const values = [...kinds].map(([value, [many, expected]]) => ({ value, count: many, expected }));
      values.sort((a, b) => b.count - a.count);
      return { name: `type of ${one.name}`, distinct: values.length, values: values.slice(0, 12), choice: (type) => ["type", one.name, type] };
    }).filter((group) => group.values.length > 1);
  }

  // --- the table ------------------------------------------------------------------------------------
  const shell = byId("matches");
  const search = make("input", { type: "search", placeholder: "Search ids and values", "aria-label": "Search", oninput: () => { state.text = search.value.toLowerCase(); state.page = 0; render(); } });
  const least = make("input", { type: "range", min: 0, max: 100, value: 0, "aria-label": "Least probability", oninput: () => { state.least = least.value / 100; state.page = 0; render(); } });
  const leastText = make("span", {}, "0%");
  const chips = make("span", { class: "chips" });
  const tabs = make("span", { role: "group", "aria-label": "Which matches" });
  const head = make("thead"), body = make("tbody");
  const info = make("span", { class: "note", "aria-live": "polite" });
  const back = make("button", { type: "button", onclick: () => turn(-1) }, "Previous");
  const forth = make("button", { type: "button", onclick: () => turn(1) }, "Next");
  const texts = {};
  function textOf(name, i) {
    if (!texts[name]) {
      const set = sets[name];
      texts[name] = Array.from({ length: size(set) }, (_, k) => {
        const own = set.columns.filter((c) => c.role !== "end").map((c) => JSON.stringify(c.values[k]));
        const types = set.drawn[k][0].map(([, place]) => typeOf(place));
        return [...own, ...types].join(" ").toLowerCase();
      });
    }
    return texts[name][i];
  }
  function missed(i) { return found.compared && !found.compared[i] && column(found, "confidence")[i] >= 0.5; }
  function rows() {
    const name = state.set === "invented" ? "invented" : "found";
    const set = sets[name];
    const confidence = column(set, "confidence");
    let chosen = Array.from({ length: size(set) }, (_, k) => k);
    if (name === "found") {
      chosen = chosen.filter((i) => confidence[i] >= state.least);
      if (state.set === "missed") chosen = chosen.filter(missed);
      for (const filter of Object.values(filters)) chosen = chosen.filter((i) => filter.value(i));
    }
    if (state.text) chosen = chosen.filter((i) => textOf(name, i).includes(state.text));
    const values = column(set, state.sort);
    const rank = (value) => (Array.isArray(value) ? value.join(",") : value);
    const sign = state.down ? -1 : 1;
    chosen.sort((one, other) => {
      const a = rank(values[one]), b = rank(values[other]);
      if (a === b) return one - other;
      if (a === null || a === undefined) return 1;
      if (b === null || b === undefined) return -1;
      if (typeof a === "number" && typeof b === "number") return sign * (a - b);
      return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
    });
    return { name, set, chosen };
  }
  function shown(column, value) {
    if (value === null || value === undefined) return "";
    if (column.kind === "time") return when(value);
    if (Array.isArray(value)) return value.map((one) => (one === null ? "null" : one)).join(", ");
    if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(+value.toPrecision(6));
    return String(value);
  }
  function cell(set, column, i) {
    const value = column.values[i];
    if (column.name === "confidence" && column.role === "end") {
      const tag = set === found && missed(i) ? make("span", { class: "tag", title: `not found on ${basis.name}` }, `missed by ${basis.short}`) : null;
      return make("td", {}, make("span", { class: "sure" }, make("i", { style: `--p:${100 * value}%` }), percent(value)), " ", tag);
    }
    const text = shown(column, value);
    return make("td", { class: column.kind === "number" && !Array.isArray(value) ? "number" : null, title: text.length > 30 ? text : null }, text);
  }
  const titles = { confidence: "probability", range_lower: "from", range_upper: "to" };
  function possible(place) {
    const ends = spanOf(place), between = (first, last) => (first === last ? when(first) : `${when(first)} – ${when(last)}`);
    return ends ? `begins ${between(ends[0], ends[1])}, ends ${between(ends[2], ends[3])}` : between(events.lower[place], events.upper[place]);
  }
  function eventsOf(set, n) {
    const own = set.drawn[n][0];
    const attributes = events.attributes.filter((a) => own.some(([, place]) => a.values[place] !== null));
    const given = own.some(([, place]) => events.stamp[place] !== null);
    const names = ["", "type", "id", "can have happened", ...(given ? ["raw stamp"] : []), ...attributes.map((a) => a.name)];
    return make("div", { class: "scroll" }, make("table", { class: "events" },
      make("thead", {}, make("tr", {}, names.map((name) => make("th", { scope: "col" }, make("small", {}, name))))),
      make("tbody", {}, own.map(([variable, place]) => make("tr", {},
        make("td", {}, make("b", {}, variable)), make("td", {}, typeOf(place)), make("td", {}, String(events.id[place])),
        make("td", { class: "time" }, possible(place)),
        given ? make("td", { class: "time" }, events.stamp[place] === null ? "" : when(events.stamp[place])) : null,
        attributes.map((a) => make("td", {}, make("div", { class: "value" }, shown({}, a.values[place])))))))));
  }
  // The rows of files that the events stand in, with their neighbours.
  const lineOf = new Map(facts.lines ? facts.lines.of.map(([place, file, row]) => [place, { file, row }]) : []);
  function linesOf(set, n) {
    const own = set.drawn[n][0].filter(([, place]) => lineOf.has(place));
    if (!own.length) return null;
    return make("details", { class: "factors" }, make("summary", {}, "The raw lines"), own.map(([variable, place]) => {
      const { file, row } = lineOf.get(place);
      const near = facts.lines.texts[file].filter(([at]) => Math.abs(at - row) <= 2);
      const wide = String(near[near.length - 1][0]).length;
      return [make("p", { class: "note" }, make("b", {}, variable), ` ${facts.lines.files[file]}:${row}`),
        make("pre", { class: "lines" }, near.map(([at, text]) => make(at === row ? "b" : "span", {}, `${String(at).padStart(wide)}  ${text}\n`)))];
    }));
  }
  // --- links and files ------------------------------------------------------------------------------
  // A match is named by the ids of its events, one variable behind the other, after the keys that ids are unique in.
  const nameOf = (set, n) => JSON.stringify(facts.match_columns.map((name) => column(set, name)[n]));
  // A widget around the page in a notebook sets its colours and its open match, and hears which one is open.
  let widget = null;
  function hear({ source, data }) {
    if (source !== parent || parent === window || !data || data.to !== "uncertain-cep page") return;
    widget = source;
    if (data.theme) document.documentElement.dataset.theme = data.theme;
    if (data.match) follow(new URLSearchParams({ match: JSON.stringify(facts.match_columns.map((name) => data.match[name])) }));
  }
  function tell(match) {
    const values = match && JSON.parse(match);
    if (widget) widget.postMessage({ from: "uncertain-cep page", match: values && Object.fromEntries(facts.match_columns.map((name, k) => [name, values[k]])) }, "*");
  }
  function address(match) {
    const parts = new URLSearchParams();
    if (match) parts.set("match", match);
    for (const { kind, args } of Object.values(filters)) parts.append(kind, JSON.stringify(args));
    if (state.set !== "found") parts.set("set", state.set);
    if (state.text) parts.set("search", state.text);
    if (state.least) parts.set("least", String(state.least));
    return `#${parts}`;
  }
  function noted(match) {
    tell(match);
    // A page in a frame may have no history.
    try { history.replaceState(null, "", address(match) === "#" ? location.pathname + location.search : address(match)); } catch (error) { if (error.name !== "SecurityError") throw error; }
  }
  function parsed(text) { try { return JSON.parse(text); } catch { return null; } }
  function follow(parts = new URLSearchParams(location.hash.slice(1))) {
    if (!["match", "set", "search", "least", ...Object.keys(kindsOfFilters)].some((name) => parts.has(name)) || !size(found)) return;
    for (const name of Object.keys(filters)) delete filters[name];
    for (const kind of Object.keys(kindsOfFilters)) for (const text of parts.getAll(kind)) {
      const filter = filterOf(kind, parsed(text));
      if (filter) filters[filter.name] = filter;
    }
    state.set = kinds[parts.get("set")] && (parts.get("set") === "found" || facts.raw[parts.get("set")]) ? parts.get("set") : "found";
    if (state.set === "invented" && !column(sets.invented, state.sort).length) state.sort = "range_lower";
    state.text = parts.get("search") || "";
    search.value = state.text;
    state.least = Math.min(Math.max(Number(parts.get("least")) || 0, 0), 1);
    least.value = String(100 * state.least);
    const { set, chosen } = rows();
    const place = parts.has("match") ? chosen.findIndex((i) => nameOf(set, i) === parts.get("match")) : -1;
    state.page = Math.max(Math.floor(place / PAGE), 0);
    render();
    if (place < 0) return shell.scrollIntoView({ block: "start" });
    const row = body.querySelectorAll("tr.row")[place % PAGE];
    toggle(row, set, chosen[place], set.columns.length);
    row.focus();
    row.scrollIntoView({ block: "start" });
  }
  function plainly(column, value) {
    if (value === null || value === undefined) return null;
    return column.kind === "time" && stamped ? `${time(value, true).replace(" ", "T")}${clock.zone ? "Z" : ""}` : column.kind === "time" ? Number(time(value, true).replace(/,/g, "")) : value;
  }
  function records() {
    const { set, chosen } = rows();
    return [set.columns, chosen.map((i) => set.columns.map((one) => plainly(one, one.values[i])))];
  }
  function asJson() {
    const [columns, lines] = records();
    return JSON.stringify(lines.map((line) => Object.fromEntries(line.map((value, k) => [columns[k].name, value]))), null, 1);
  }
  function asCsv() {
    const [columns, lines] = records();
    // A spreadsheet takes text that begins so for a formula.
    const safe = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : value);
    const cellOf = (value) => {
      const text = value === null ? "" : String(Array.isArray(value) ? JSON.stringify(value) : safe(value));
      return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    return [columns.map((one) => one.name), ...lines].map((line) => line.map(cellOf).join(",")).join("\r\n") + "\r\n";
  }
  function saved(text, kind, name) {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
  function panel(set, n, columns) {
    const said = set === sets.invented ? why(set, n) : null;
    return make("tr", { class: "panel-row" }, make("td", { class: "open-cell", colspan: columns }, make("div", {}, said ? make("p", {}, said) : null, timeline(set, n, shell.querySelector(".controls")), keyOf(set, n), factors(set, n), orderOf(set, n), linesOf(set, n), eventsOf(set, n), make("p", { class: "note" }, make("a", { href: address(nameOf(set, n)) }, "Link to this match")))));
  }
  function toggle(row, set, n, columns) {
    const key = `${state.set === "invented" ? "i" : "f"}${n}`;
    const opens = !state.open.has(key);
    if (opens) { state.open.add(key); row.after(panel(set, n, columns)); } else { state.open.delete(key); row.nextElementSibling.remove(); }
    row.classList.toggle("open", opens);
    noted(opens ? nameOf(set, n) : null);
    row.setAttribute("aria-expanded", String(opens));
  }
  function turn(by) { state.page += by; render(); shell.scrollIntoView({ block: "start" }); }
  function show(name) { state.set = name; if (name === "invented" && !column(sets.invented, state.sort).length) state.sort = "range_lower"; render(); }
  function header(set) {
    return make("tr", {}, set.columns.map((one) => {
      const sorted = one.name === state.sort;
      const sort = () => { state.down = sorted ? !state.down : one.kind !== "text" && one.name !== "range_lower"; state.sort = one.name; state.page = 0; render(); head.querySelector(`[data-name="${CSS.escape(one.name)}"]`).focus(); };
      const label = one.role === "end" ? titles[one.name] || one.name : one.name;
      const number = one.kind === "number" && one.role !== "end";
      return make("th", { scope: "col", class: number ? "number" : null, "aria-sort": sorted ? (state.down ? "descending" : "ascending") : null }, make("button", { type: "button", onclick: sort, "data-name": one.name }, label, sorted ? (state.down ? " ↓" : " ↑") : ""));
    }));
  }
  function move(row, by) {
    let next = row;
    do next = by > 0 ? next.nextElementSibling : next.previousElementSibling; while (next && !next.classList.contains("row"));
    if (next) next.focus();
  }
  function render() {
    leastText.textContent = `${Math.round(100 * state.least)}%`;
    tabs.replaceChildren(...Object.entries(kinds).filter(([name]) => name === "found" || (facts.raw.matches !== null && facts.raw[name])).map(([name, label]) => {
      const many = name === "found" ? facts.totals.matches : facts.raw[name];
      return make("button", { type: "button", "aria-pressed": String(state.set === name), onclick: () => { state.page = 0; show(name); } }, `${label} (${whole(many)})`);
    }));
    chips.replaceChildren(...Object.entries(filters).map(([name, filter]) => make("button", { type: "button", "aria-label": `Remove filter ${filter.label}`, onclick: () => { delete filters[name]; state.page = 0; render(); } }, `${filter.label} ✕`)));
    const { set, chosen } = rows();
    const pages = Math.max(Math.ceil(chosen.length / PAGE), 1);
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const from = state.page * PAGE;
    const part = chosen.slice(from, from + PAGE);
    state.open.clear();
    head.replaceChildren(header(set));
    const columns = set.columns.length;
    body.replaceChildren(...part.map((i, k) => {
      const row = make("tr", { class: "row", tabindex: k ? "-1" : "0", "aria-expanded": "false" }, set.columns.map((one) => cell(set, one, i)));
      row.addEventListener("click", () => { if (!String(getSelection())) toggle(row, set, i, columns); });
      row.addEventListener("keydown", (event) => {
        if (event.target !== row) return;
        const action = { Enter: () => toggle(row, set, i, columns), " ": () => toggle(row, set, i, columns), ArrowDown: () => move(row, 1), ArrowUp: () => move(row, -1) }[event.key];
        if (action) { event.preventDefault(); action(); }
      });
      return row;
    }));
    const all = state.set === "invented" ? facts.raw.invented : facts.totals.matches;
    const best = size(set) < all && state.set !== "missed" ? ` (the best of ${whole(all)})` : "";
    info.textContent = chosen.length ? `${whole(from + 1)} to ${whole(from + part.length)} of ${whole(chosen.length)}${best}` : `No match${best && ` among the best ${whole(size(set))}`} is like that.`;
    back.disabled = state.page === 0;
    forth.disabled = state.page >= pages - 1;
    if (document.documentElement.dataset.ready) noted(null);
  }
  function table() {
    if (!size(found) && !(sets.invented && size(sets.invented))) return shell.remove();
    if (!size(found)) state.set = "invented";
    shell.append(
      make("h2", {}, "The matches"),
      make("p", { class: "note" }, `${stamped && !days ? `All on ${time(earliest, true).slice(0, 10)}. ` : ""}${clock.zone ? "Times are in UTC. " : ""}A row opens its time line. Keys: / searches, arrows move, Enter opens.`),
      make("div", { class: "controls" }, tabs, search, make("label", {}, "at least", least, leastText), chips),
      make("div", { class: "scroll" }, make("table", { "aria-label": "Matches" }, head, body)),
      make("div", { class: "pages" }, back, forth, info, make("span", { class: "files" },
        make("button", { type: "button", onclick: () => saved(asCsv(), "text/csv;charset=utf-8", "matches.csv") }, "Save as CSV"),
        make("button", { type: "button", onclick: () => saved(asJson(), "application/json", "matches.json") }, "Save as JSON"),
        make("button", { type: "button", onclick: () => print() }, "Print"))),
    );
    render();
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) { event.preventDefault(); search.focus(); }
  });
  document.querySelector(".theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  });
  addEventListener("beforeprint", () => document.querySelectorAll("#about details").forEach((one) => { one.open = true; }));
  Object.assign(tools, { shown, timeline, keyOf, factors, tableOf, graphOf });
  const chooseGroup = (r) => {
    delete filters.group;
    choose("group", r);
    shell.scrollIntoView({ block: "start" });
  };
  const shared = facts.occurrences || facts.shared;
  if (!facts.occurrences) totals();
  if (!shared) byId("groups").remove();
  const groups = shared && drawGroups(tools, facts, shared, found, byId("groups"), facts.occurrences ? byId("totals") : null, chooseGroup);
  if (facts.occurrences && facts.totals.matches) byId("totals").append(verdict());
  example();
  charts();
  table();
  follow();
  addEventListener("hashchange", () => follow());
  addEventListener("message", hear);
  document.documentElement.dataset.ready = "yes";
  if (parent !== window) parent.postMessage({ from: "uncertain-cep page", ready: true }, "*");
})();

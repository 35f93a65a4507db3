"use strict";
// A match in swim lanes: a row for each of its events, by host or key, over a time axis to zoom and to move.
function makeLanes(tools, facts, sets) {
  const { make, draw, time, length, when, column, typeOf, stampOf, spanOf, axis, clock, stamped, cut } = tools;
  const LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz";
  const ROW = 40, HEAD = 22, TALL = 26, THIN = 13, CHART = 64, STEP = 1.6, LEAST_TICKS = 3, LINES = 6;
  const events = facts.events;
  const lanes = events.attributes.find((one) => one.name === facts.lane);
  let drawings = 0;

  const span = (first, last) => (first === last ? when(first) : `${when(first)} to ${when(last)}, ${length(last - first)} later`);
  const named = (place) => `${typeOf(place)} ${events.id[place]}`;

  // --- rows, by lane --------------------------------------------------------------------------------
  function rowsOf(set, n) {
    const [members, spoiling] = set.drawn[n];
    const often = {}, sofar = {};
    for (const [variable] of members) often[variable] = (often[variable] || 0) + 1;
    const rows = members.map(([variable, place, shades, first = events.lower[place], last = events.upper[place]]) => {
      sofar[variable] = (sofar[variable] || 0) + 1;
      return { label: often[variable] > 1 ? `${variable}[${sofar[variable]}]` : variable, place, shades, first, last };
    });
    return [...rows, ...spoiling.map((place) => ({ label: "could spoil", place, spoiling: true }))];
  }
  function besideOf(set, n) {
    const [total, places] = (set.nearby || [])[n] || [0, []];
    return { total, places };
  }
  // Events nearby stand in as few lines as they fit into.
  function packed(places, low, high) {
    const lines = [], room = (high - low) / 150;
    for (const place of [...places].sort((a, b) => events.lower[a] - events.lower[b])) {
      const soonest = lines.reduce((a, b) => (a && a.free <= b.free ? a : b), null);
      const line = lines.find((one) => one.free <= events.lower[place]) || (lines.length < LINES ? null : soonest);
      if (line) { line.places.push(place); line.free = events.upper[place] + 1 + room; } else lines.push({ places: [place], free: events.upper[place] + 1 + room });
    }
    return lines.map((one) => one.places);
  }
  // A metric is a series if its periods do not overlap: of each lane, those of one type and attribute.
  function seriesOf(rows, near) {
    const series = [], members = rows.filter((row) => !row.spoiling).map((row) => row.place);
    for (const rule of facts.thresholds) {
      const attribute = events.attributes.find((one) => one.name === rule.attribute);
      for (const row of rows.filter((one) => !one.spoiling && one.label.split("[")[0] === rule.variable)) {
        const lane = laneOf(row.place), type = typeOf(row.place);
        const same = series.find((one) => one.lane === lane && one.type === type && one.attribute === rule.attribute);
        const line = { operator: rule.operator, value: rule.value };
        if (same) {
          if (!same.lines.some((one) => one.operator === line.operator && one.value === line.value)) same.lines.push(line);
          continue;
        }
        const places = [...new Set([...members, ...near])].filter((place) => typeOf(place) === type && laneOf(place) === lane && typeof attribute.values[place] === "number");
        places.sort((a, b) => events.lower[a] - events.lower[b]);
        const disjoint = places.every((place, k) => !k || events.lower[place] >= events.upper[places[k - 1]]);
        if (places.length > 1 && disjoint) series.push({ lane, type, attribute: rule.attribute, values: attribute.values, places, members, lines: [line] });
      }
    }
    return series;
  }
  const laneOf = (place) => (lanes ? lanes.values[place] : null);
  const short = (value) => (Math.abs(value) >= 1e9 ? value.toExponential(2).replace("e+", "e") : (+value.toPrecision(4)).toLocaleString("en-US"));
  function laidOut(rows, beside, metrics, low, high) {
    const groups = new Map();
    const into = (place, kind, row) => {
      const key = String(laneOf(place));
      if (!groups.has(key)) groups.set(key, { name: laneOf(place), rows: [], beside: [] });
      groups.get(key)[kind].push(row);
    };
    for (const row of rows) into(row.place, "rows", row);
    for (const place of beside) into(place, "beside", place);
    const parts = [];
    let y = 0;
    for (const group of groups.values()) {
      const top = y;
      if (lanes) y += HEAD;
      const charts = metrics.filter((one) => one.lane === group.name);
      const placed = group.rows.map((row) => ({ ...row, y: (y += ROW) - ROW }));
      const lines = packed(group.beside, low, high).map((places) => ({ places, y: (y += THIN) - THIN }));
      if (lines.length) y += 4;
      const drawn = charts.map((one) => ({ ...one, y: (y += CHART) - CHART }));
      parts.push({ name: group.name, top, height: y - top, rows: placed, lines, charts: drawn });
    }
    return { parts, height: y };
  }

  // --- shapes ---------------------------------------------------------------------------------------
  // A strip over the interval, as high in each part as a tick of it is likely.
  function strip(row, x, y) {
    const parts = row.shades.length, ticks = row.last - row.first + 1;
    // Parts are as long as each other as far as ticks allow, as in Pictures.edges.
    const edge = (part) => row.first + part * Math.floor(ticks / parts) + Math.floor((part * (ticks % parts)) / parts);
    const high = (part) => ((TALL - 4) * LEVELS.indexOf(row.shades[part])) / (LEVELS.length - 1);
    let path = `M${x(edge(0))} ${y + TALL}`;
    for (let part = 0; part < parts; part += 1) {
      const from = x(edge(part)), to = Math.max(x(edge(part + 1)), from + (parts === 1 ? 3 : 0));
      path += `V${y + TALL - high(part)}H${to}`;
    }
    return draw("path", { class: "density", d: `${path}V${y + TALL}Z`, "pointer-events": "none" });
  }
  // An event that lasts: full where it lasts for sure, pointed where it begins and ends at some tick.
  function lasting(place, x, y, tall, spoiling = false) {
    const [first, begun, ends, last] = spanOf(place);
    const mid = y + tall / 2;
    const full = Math.max(ends, begun);
    return draw("path", { class: spoiling ? "span spoiler" : "span", d: `M${x(first)} ${mid}L${x(begun)} ${y}H${x(full)}L${x(last + 1)} ${mid}L${x(full)} ${y + tall}H${x(begun)}Z` },
      draw("title", {}, `${spoiling ? "could spoil: " : ""}${named(place)}: begins ${span(first, begun)}; ends ${span(ends, last)}`));
  }
  function interval(row, x, y, kind, said) {
    const from = x(events.lower[row.place]);
    return draw("rect", { class: kind, x: from, y, width: Math.max(x(events.upper[row.place] + 1) - from, 3), height: TALL, rx: 3 },
      draw("title", {}, `${said}${named(row.place)}: ${span(events.lower[row.place], events.upper[row.place])}`));
  }

  function timeline(set, n, box) {
    const rows = rowsOf(set, n), near = besideOf(set, n);
    const times = rows.flatMap((row) => [events.lower[row.place], events.upper[row.place], stampOf(row.place)]);
    const margin = Math.max((Math.max(...times) + 1 - Math.min(...times)) * 0.04, 0.5);
    const full = { low: Math.min(...times) - margin, high: Math.max(...times) + 1 + margin };
    const view = { ...full, beside: false };
    const metrics = seriesOf(rows, near.places);
    const top = 26, clip = `lanes-${(drawings += 1)}`;
    let width, left, right, letters;
    function fit(room) {
      width = Math.min(Math.max(room, 280), 1100);
      left = width < 500 ? 92 : 150;
      right = width - 12;
      letters = Math.floor((left - 6) / 6.2);
    }
    const padding = getComputedStyle(box);
    fit(box.clientWidth - parseFloat(padding.paddingLeft) - parseFloat(padding.paddingRight));
    const range = set === sets.invented ? null : [column(set, "range_lower")[n], column(set, "range_upper")[n]];
    const said = rows.map((row) => `${row.label} ${named(row.place)} from ${when(events.lower[row.place])} to ${when(events.upper[row.place])}`);
    const picture = draw("svg", { role: "img", "aria-label": `Time line: ${said.join("; ")}` });
    const status = make("span", { class: "visually-hidden", "aria-live": "polite" });
    const x = (tick) => left + ((tick - view.low) / (view.high - view.low)) * (right - left);

    function paint() {
      const { parts, height } = laidOut(rows, view.beside ? near.places : [], metrics, full.low, full.high);
      const inside = draw("g", { "clip-path": `url(#${clip})` });
      picture.style.maxWidth = `${width}px`;
      picture.setAttribute("viewBox", `0 0 ${width} ${top + height + 38}`);
      picture.replaceChildren(draw("defs", {}, draw("clipPath", { id: clip }, draw("rect", { x: left, y: 0, width: right - left, height: top + height + 4 }))));
      parts.forEach((part, k) => {
        if (lanes) picture.append(draw("rect", { class: k % 2 ? "swim odd" : "swim", x: 0, y: top + part.top, width: right, height: part.height, rx: 4 }));
      });
      if (range) {
        const [from, to] = [x(range[0]), x(range[1] + 1)], text = "can only have happened here";
        inside.append(draw("rect", { class: "range", x: from, y: top - 6, width: Math.max(to - from, 1), height: height + 6 }),
          draw("line", { class: "range-edge", x1: from, x2: to, y1: top - 6, y2: top - 6 }));
        const seen = [Math.max(from, left), Math.min(to, right)];
        if (seen[1] > seen[0]) picture.append(draw("text", { class: "dim", x: Math.min(Math.max((seen[0] + seen[1]) / 2, left + 75), right - 75), y: top - 11, "text-anchor": "middle" }, text));
      }
      picture.append(inside);
      for (const part of parts) {
        if (lanes) picture.append(draw("text", { class: "head", x: 6, y: top + part.top + 15 }, part.name === null ? `no ${facts.lane}` : `${facts.lane} ${part.name}`));
        for (const row of part.rows) oneRow(picture, inside, row, top + row.y);
        for (const chart of part.charts) stepLine(picture, inside, chart, top + chart.y);
        part.lines.forEach((line, k) => {
          if (!k) picture.append(draw("text", { class: "dim", x: 6, y: top + line.y + 11 }, "nearby"));
          for (const place of line.places) inside.append(nearbyMark(place, top + line.y));
        });
      }
      axis(picture, view.low, view.high, left, right, width, top + height + 4);
      picture.append(draw("text", { class: "dim", x: 0, y: top + height + 21 }, stamped ? time(Math.max(view.low, 0), true).slice(0, 10) : "ticks"),
        stamped ? draw("text", { class: "dim", x: 0, y: top + height + 34 }, clock.zone || "no zone") : null);
      whole.disabled = view.low <= full.low && view.high >= full.high;
      picture.classList.toggle("zoomed", !whole.disabled);
    }
    function oneRow(outside, inside, row, y) {
      const upper = y + (ROW - TALL) / 2;
      outside.append(
        draw("text", { class: "variable", x: 6, y: y + 17 }, row.label),
        draw("text", { class: "dim", x: 6, y: y + 31 }, cut(named(row.place), letters), draw("title", {}, named(row.place))),
      );
      inside.append(draw("line", { class: "lane", x1: left, x2: right, y1: y + ROW - 7, y2: y + ROW - 7 }));
      if (spanOf(row.place)) inside.append(lasting(row.place, x, upper, TALL, row.spoiling));
      else {
        inside.append(interval(row, x, upper, row.spoiling ? "spoiler" : "interval", row.spoiling ? "could spoil: " : ""));
        if (row.shades) inside.append(strip(row, x, upper));
      }
      if (events.stamp[row.place] !== null && !row.spoiling) {
        const at = x(events.stamp[row.place] + 0.5);
        inside.append(draw("path", { class: "stamp", d: `M${at} ${upper + TALL / 2 - 7}l6 7l-6 7l-6 -7z` }, draw("title", {}, `stamp ${when(events.stamp[row.place])}`)));
      }
    }
    function stepLine(outside, inside, chart, y) {
      const numbers = [...chart.places.map((place) => chart.values[place]), ...chart.lines.map((line) => line.value)];
      const [least, most] = [Math.min(...numbers), Math.max(...numbers)], wide = most - least || 1;
      const high = (value) => y + CHART - 10 - ((value - least) / wide) * (CHART - 22);
      let path = "";
      chart.places.forEach((place, k) => {
        const [from, to] = [x(events.lower[place]), x(events.upper[place] + 1)], at = high(chart.values[place]);
        // Where a period is missing, the line has a gap.
        const joins = k && events.lower[place] <= events.upper[chart.places[k - 1]] + 1;
        path += `${joins ? "V" : `M${from} `}${at}H${to}`;
      });
      const said = chart.places.map((place) => `${short(chart.values[place])} from ${when(events.lower[place])} to ${when(events.upper[place])}`);
      outside.append(draw("text", { class: "dim", x: 6, y: y + CHART / 2 + 5 }, cut(`${chart.type} ${chart.attribute}`, letters)),
        draw("text", { class: "dim", x: left - 6, y: high(most) + 4, "text-anchor": "end" }, short(most)),
        least === most ? "" : draw("text", { class: "dim", x: left - 6, y: high(least) + 4, "text-anchor": "end" }, short(least)));
      for (const line of chart.lines) {
        inside.append(draw("line", { class: "threshold", x1: left, x2: right, y1: high(line.value), y2: high(line.value) },
          draw("title", {}, `${chart.attribute} ${line.operator} ${short(line.value)}`)));
        outside.append(draw("text", { class: "dim threshold-name", x: right - 2, y: high(line.value) - 3, "text-anchor": "end" }, `${line.operator} ${short(line.value)}`));
      }
      inside.append(draw("path", { class: "metric", d: path }, draw("title", {}, `${chart.type} ${chart.attribute}: ${said.join("; ")}`)));
      for (const place of chart.places.filter((one) => chart.members.includes(one))) {
        const at = high(chart.values[place]);
        inside.append(draw("line", { class: "metric member", x1: x(events.lower[place]), x2: x(events.upper[place] + 1), y1: at, y2: at },
          draw("title", {}, `${named(place)}: ${short(chart.values[place])}`)));
      }
    }
    function nearbyMark(place, y) {
      if (spanOf(place)) return lasting(place, x, y + 1, THIN - 3);
      const from = x(events.lower[place]);
      return draw("rect", { class: "beside", x: from, y: y + 2, width: Math.max(x(events.upper[place] + 1) - from, 3), height: THIN - 4, rx: 2 },
        draw("title", {}, `${named(place)}: ${span(events.lower[place], events.upper[place])}`));
    }

    // --- zoom and move ------------------------------------------------------------------------------
    function show(low, high) {
      const wide = Math.min(Math.max(high - low, LEAST_TICKS), full.high - full.low);
      const from = Math.min(Math.max((low + high - wide) / 2, full.low), full.high - wide);
      view.low = from;
      view.high = from + wide;
      paint();
      status.textContent = whole.disabled ? "All of the time" : `${when(Math.ceil(view.low))} to ${when(Math.floor(view.high))}`;
    }
    const zoom = (by, at = (view.low + view.high) / 2) => show(at - (at - view.low) / by, at + (view.high - at) / by);
    const move = (by) => show(view.low + by, view.high + by);
    const wide = () => view.high - view.low;
    const tickAt = (event) => {
      const own = picture.getBoundingClientRect();
      return view.low + (((event.clientX - own.left) * width) / own.width - left) / (right - left) * wide();
    };
    const perPixel = () => (wide() / (right - left)) * (width / picture.getBoundingClientRect().width);
    const fingers = new Map();
    picture.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event.clientX); picture.setPointerCapture(event.pointerId); });
    picture.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const before = [...fingers.values()];
      fingers.set(event.pointerId, event.clientX);
      const now = [...fingers.values()];
      const apart = (ends) => Math.max(Math.abs(ends[0] - ends[1]), 10);
      if (now.length === 2) zoom(apart(now) / apart(before), tickAt({ clientX: (now[0] + now[1]) / 2 }));
      else if (now.length === 1 && now[0] !== before[0]) move((before[0] - now[0]) * perPixel());
    });
    for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, (event) => fingers.delete(event.pointerId));
    picture.addEventListener("dblclick", (event) => zoom(event.shiftKey ? 1 / 2 : 2, tickAt(event)));
    picture.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 200), tickAt(event));
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !whole.disabled) move(event.deltaX * perPixel());
      else return;
      event.preventDefault();
    }, { passive: false });
    const keys = {
      "+": () => zoom(STEP), "=": () => zoom(STEP), "-": () => zoom(1 / STEP), "0": () => show(full.low, full.high),
      ArrowLeft: () => move(-wide() / 8), ArrowRight: () => move(wide() / 8), Home: () => show(full.low, full.low + wide()), End: () => show(full.high - wide(), full.high),
    };
    const whole = make("button", { type: "button", onclick: () => show(full.low, full.high) }, "All");
    const more = near.places.length
      ? make("button", { type: "button", "aria-pressed": "false", onclick: () => { view.beside = !view.beside; more.setAttribute("aria-pressed", String(view.beside)); paint(); } },
        `Other events nearby (${near.total > near.places.length ? `${near.places.length} of ${near.total.toLocaleString("en-US")}` : near.total})`)
      : null;
    const stage = make("div", {
      class: "stage", tabindex: "0", role: "group", "aria-label": "Time line: plus and minus zoom, arrows move, 0 shows all",
      onkeydown: (event) => {
        const action = event.target === stage && !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key];
        if (action) { event.preventDefault(); event.stopPropagation(); action(); }
      },
    }, picture);
    paint();
    new ResizeObserver(() => {
      const before = width;
      if (stage.clientWidth) fit(stage.clientWidth);
      if (width !== before) paint();
    }).observe(stage);
    return make("div", { class: "lanes" }, stage, make("div", { class: "lane-tools" },
      make("button", { type: "button", "aria-label": "Zoom in", onclick: () => zoom(STEP) }, "+"),
      make("button", { type: "button", "aria-label": "Zoom out", onclick: () => zoom(1 / STEP) }, "−"), whole, more, status));
  }
  return timeline;
}

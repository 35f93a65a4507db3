"use strict";
// Elements, numbers, times and axes: everything that the drawings of a page share.
function makeTools(facts) {
  const NS = "http://www.w3.org/2000/svg";

  // --- making elements: text is always text ---------------------------------------------------------
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of [children].flat(3)) if (child !== null && child !== undefined) element.append(child);
    return element;
  }
  const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes, ...children) => fill(document.createElementNS(NS, tag), attributes, children);
  const byId = (id) => document.getElementById(id);
  const whole = (number) => number.toLocaleString("en-US");
  // Long names differ at their ends as often as in front.
  function cut(text, letters) {
    const tail = Math.floor(letters * 0.4), head = Math.max(letters - 1 - tail, 1);
    return text.length > letters ? `${text.slice(0, head)}…${text.slice(text.length - tail)}` : text;
  }
  // An expected number, which may be far below 1.
  const amount = (number) => (number >= 100 ? (+number.toFixed(1)).toLocaleString("en-US") : String(+number.toPrecision(3)));
  const count = (number, one, many) => `${whole(number)} ${number === 1 ? one : many}`;

  // What a click does, Enter and the space bar do, too.
  function pressed(action) {
    return { tabindex: "0", role: "button", onclick: action, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); action(); } } };
  }

  // Pictures are one stop of the Tab key. Within one arrows move, by lines of parts: the places of its parts and the
  // parts themselves.
  function oneStop(some) {
    const lines = some.filter((line) => line.length);
    const parts = lines.flat().map(([, part]) => part);
    parts.forEach((part, k) => part.setAttribute("tabindex", k ? "-1" : "0"));
    const nearest = (line, place) => line.reduce((best, one) => (Math.abs(one[0] - place) < Math.abs(best[0] - place) ? one : best));
    lines.forEach((line, y) => line.forEach(([place, part], x) => part.addEventListener("keydown", (event) => {
      const [along, across] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key] || [0, 0];
      if (!along && !across) return;
      event.preventDefault();
      const next = across ? lines[y + across] && nearest(lines[y + across], place)[1] : (line[x + along] || [])[1];
      if (!next) return;
      parts.forEach((one) => one.setAttribute("tabindex", one === next ? "0" : "-1"));
      next.focus();
    })));
  }
  // The numbers of a picture, made when they are opened.
  function asTable(heads, lines) {
    const box = make("details", { class: "factors" }, make("summary", {}, "As a table"));
    box.addEventListener("toggle", () => {
      if (box.childNodes.length > 1) return;
      const cellOf = (value, k) => make(k ? "td" : "th", k ? { class: "number" } : { scope: "row" }, value);
      box.append(make("div", { class: "scroll" }, make("table", { class: "numbers" },
        make("thead", {}, make("tr", {}, heads.map((head, k) => make("th", { scope: "col", class: k ? "number" : null }, make("small", {}, head))))),
        make("tbody", {}, lines().map((line) => make("tr", {}, line.map(cellOf)))))));
    });
    return box;
  }

  // --- times: ticks behind the first one ------------------------------------------------------------
  const clock = facts.clock;
  // As text of the library: without zeros behind the last digit of a second.
  function time(tick, date) {
    if (clock.kind === "tick") return (BigInt(clock.origin) + BigInt(Math.round(tick))).toLocaleString("en-US");
    const micros = clock.us + tick * clock.tick;
    const ms = Math.floor(micros / 1000);
    const iso = new Date(clock.ms + ms).toISOString();
    const below = Math.round((micros - ms * 1000) * 1000);
    const fraction = (iso.slice(20, 23) + String(below).padStart(6, "0")).replace(/0+$/, "");
    return (date ? `${iso.slice(0, 10)} ` : "") + iso.slice(11, 19) + (fraction ? `.${fraction}` : "");
  }
  function length(ticks) {
    if (clock.kind === "tick") return count(ticks, "tick", "ticks");
    const micros = ticks * clock.tick;
    for (const [unit, size] of [["d", 86400e6], ["h", 3600e6], ["min", 60e6], ["s", 1e6], ["ms", 1e3]])
      if (micros >= size) return `${+(micros / size).toPrecision(3)} ${unit}`;
    return `${+micros.toPrecision(3)} µs`;
  }
  // As display.percent of the library: halves go to the even digit, and only what is certain is called so.
  function percent(p) {
    if (p >= facts.certain_from) return "certain";
    if (!(p >= 0.0005 && p < 0.9995)) return p < 0.5 ? "<0.1%" : ">99.9%";
    const whole = 100 * p, even = whole % 1 === 0.25 ? Math.floor(whole) + 0.2 : whole;
    return `${even.toFixed(1).replace(/\.0$/, "")}%`;
  }
  // In a sentence: with probability 1.
  const chance = (p) => (p >= facts.certain_from ? "1" : percent(p));

  // Of a probability that is only known to be between two ends.
  function percentOf(low, high) {
    if (high - low <= 1e-9 || percent(low) === percent(high)) return percent(low);
    return high >= facts.certain_from ? `≥${percent(low).replace(">", "")}` : `${percent(low)} to ${percent(high)}`;
  }

  // --- axes: marks at round times, as many as have room ----------------------------------------------
  const stamped = clock.kind === "stamp";
  const ORIGIN = stamped ? BigInt(clock.ms) * 1000000n + BigInt(Math.round(clock.us * 1000)) : BigInt(clock.origin);
  const TICK = stamped ? BigInt(Math.round(clock.tick * 1000)) : 1n;
  const SECOND = 1000000000n, DAY = 86400n * SECOND;
  const decades = (unit, most) => Array.from({ length: most }, (_, power) => [1n, 2n, 5n].map((step) => step * 10n ** BigInt(power) * unit)).flat();
  const STEPS = stamped
    ? [...decades(1n, 9), ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200].map((n) => BigInt(n) * SECOND), DAY, 2n * DAY, 7n * DAY, 14n * DAY, 28n * DAY, ...decades(100n * DAY, 6)]
    : decades(1n, 19);
  const LETTER = 6.4; // Pixels of a letter or digit of an axis, at most.
  function nameOf(at, step, dated) {
    if (!stamped) return at.toLocaleString("en-US");
    const iso = new Date(Number((at - (((at % SECOND) + SECOND) % SECOND)) / 1000000n)).toISOString();
    if (step >= DAY) return iso.slice(0, 10);
    const below = String(((at % SECOND) + SECOND) % SECOND).padStart(9, "0");
    const digits = step >= SECOND ? 0 : Math.ceil((10 - String(step).length) / 3) * 3;
    return (dated ? `${iso.slice(5, 10)} ` : "") + iso.slice(11, step >= 60n * SECOND ? 16 : 19) + (digits ? `.${below.slice(0, digits)}` : "");
  }
  function marksOf(low, high, left, right, width) {
    const place = (at) => left + ((Number(at - ORIGIN) / Number(TICK) - low) / (high - low)) * (right - left);
    const first = ORIGIN + BigInt(Math.ceil(low)) * TICK, last = ORIGIN + BigInt(Math.floor(high)) * TICK;
    const dated = stamped && first / DAY !== last / DAY;
    let best = [];
    for (const step of STEPS) {
      if (step < TICK) continue;
      const begin = first + ((((-first) % step) + step) % step);
      if (begin > last) break;
      const wide = LETTER * nameOf(begin, step, dated).length;
      const apart = (Number(step) / Number(TICK) / (high - low)) * (right - left);
      if (best.length && apart < wide + 12) continue;
      if (Number(last - begin) / Number(step) > (right - left) / 20) continue;
      const marks = [];
      let free = -Infinity;
      for (let at = begin; at <= last; at += step) {
        const text = nameOf(at, step, dated), x = place(at), half = (LETTER * text.length) / 2;
        const from = Math.min(Math.max(x - half, 0), width - 2 * half);
        if (from < free) {
          // A label that was moved into the picture goes before it takes the room of the next one.
          if (marks.length !== 1 || marks[0].middle === marks[0].x) continue;
          marks.pop();
        }
        free = from + 2 * half + 8;
        marks.push({ x, text, at: String(at), middle: from + half });
      }
      best = marks;
      if (apart >= wide + 12) break;
    }
    return best;
  }
  function axis(picture, low, high, left, right, width, base) {
    picture.append(draw("line", { class: "axis", x1: left, x2: right, y1: base, y2: base }));
    for (const mark of marksOf(low, high, left, right, width)) {
      picture.append(
        draw("line", { class: "axis mark", x1: mark.x, x2: mark.x, y1: base, y2: base + 4 }),
        draw("text", { class: "dim tick", x: mark.middle, y: base + 17, "text-anchor": "middle", "data-at": mark.at }, mark.text),
      );
    }
  }

  // --- key by time ----------------------------------------------------------------------------------
  // Rows of cells: [name, [[column, how full, words, action]]]; the columns are as long as each other.
  function heatMap(title, width, rows, columns, [from, to]) {
    const step = 20, left = Math.min(7 * Math.max(...rows.map(([name]) => name.length)) + 8, 260, width / 3), letters = Math.floor((left - 8) / 6.6);
    const wide = (width - left) / columns, height = rows.length * step;
    const picture = draw("svg", { class: "heat", viewBox: `0 0 ${width} ${height + 24}`, style: `max-width:${width}px`, role: "group", "aria-label": title });
    oneStop(rows.map(([name, cells], y) => {
      picture.append(draw("text", { x: 0, y: y * step + 14 }, cut(name, letters), draw("title", {}, name)));
      const drawn = [...cells].sort(([a], [b]) => a - b).map(([k, full, said, action]) =>
        [k, draw("rect", { class: "cell", x: left + k * wide + 0.5, y: y * step + 1, width: Math.max(wide - 1, 1), height: step - 2, "fill-opacity": 0.08 + 0.92 * full, "aria-label": said, ...pressed(action) }, draw("title", {}, said))]);
      picture.append(...drawn.map(([, cell]) => cell));
      return drawn;
    }));
    axis(picture, from, to, left, width, width, height + 2);
    return picture;
  }
  return { make, draw, fill, byId, whole, amount, count, cut, pressed, clock, time, length, percent, percentOf, chance, stamped, axis, marksOf, heatMap, oneStop, asTable };
}

"use strict";
// Which event was first: a graph of some events, likely first ones on top. Certain orders are solid, without those
// that follow from others; open ones are dashed, with how likely the arrow is right.
function makeOrders(tools, facts) {
  const { make, draw, percent, typeOf, cut } = tools;
  const MOST = 8, ROW = 34, TOP = 20, DOT = 4.5, LETTER = 7.2, events = facts.events;
  const known = new Map();
  const name = (x, y) => x * events.type.length + y;
  if (facts.orders) facts.orders.x.forEach((x, k) => {
    const y = facts.orders.y[k], before = facts.orders.before[k], after = facts.orders.after[k];
    known.set(name(x, y), [before, after]);
    known.set(name(y, x), [after, before]);
  });
  const said = (p) => (p === 0 ? "0%" : percent(p));
  const middle = (place) => events.lower[place] + events.upper[place];

  // Some events, each [place, label], of whose pairs the page knows the order.
  function chosen(all) {
    const nodes = [];
    for (const [place, label] of all) {
      if (nodes.length === MOST) break;
      if (nodes.every((one) => one.place !== place && known.has(name(one.place, place)))) nodes.push({ place, label });
    }
    // In certain order the middles are, too: bounds are apart, or of one clock.
    return nodes.sort((a, b) => middle(a.place) - middle(b.place) || a.place - b.place);
  }
  function edgesOf(nodes) {
    const chance = (i, j) => known.get(name(nodes[i].place, nodes[j].place));
    const certain = (i, j) => chance(i, j)[0] >= facts.certain_from;
    const edges = [];
    nodes.forEach((_, i) => nodes.forEach((_, j) => {
      if (i >= j) return;
      const [before, after] = chance(i, j), [first, then, p, other] = before >= after ? [i, j, before, after] : [j, i, after, before];
      const sure = p >= facts.certain_from;
      if (sure && nodes.some((_, k) => k !== i && k !== j && certain(first, k) && certain(k, then))) return;
      edges.push({ first, then, p, other, neither: Math.max(1 - p - other, 0), sure });
    }));
    return edges;
  }
  return function graphOf(all) {
    const nodes = chosen(all);
    if (nodes.length < 2) return null;
    const edges = edgesOf(nodes), called = (one) => `${one.label} ${typeOf(one.place)} ${events.id[one.place]}`;
    const details = make("details", { class: "factors" }, make("summary", {}, "Which was first?"));
    // Hidden drawings have no width.
    details.addEventListener("toggle", () => {
      if (details.childNodes.length === 1) details.append(...drawn(nodes, called, Math.min(Math.max(details.clientWidth, 260), 620)), edges.some((edge) => edge.p > 0) ? table(nodes, edges, called) : "");
    });
    return details;
  };
  // Events that can be before or behind another one, and in words those that cannot.
  function drawn(nodes, called, width) {
    const possible = (one, other) => one !== other && known.get(name(one.place, other.place)).some((p) => p > 0);
    const ordered = nodes.filter((one) => nodes.some((other) => possible(one, other))), never = nodes.filter((one) => !ordered.includes(one));
    const said = (text) => make("p", { class: "note" }, text), meet = events.spans ? "overlap" : "are at one tick";
    if (!ordered.length) return [said(`None: they ${meet} in every world.`)];
    return [
      said("Solid: certain, all other certain orders follow. Dashed: open, with how likely the arrow is right, whether or not there is a match."),
      picture(ordered, edgesOf(ordered), called, width),
      ...never.map((one) => said(`${called(one)} and each of the others ${meet} in every world.`)),
    ];
  }
  function picture(nodes, edges, called, width) {
    const left = Math.min(230, width * 0.42, 24 + LETTER * Math.max(...nodes.map((one) => called(one).length))), widest = Math.max(...edges.map((edge) => Math.abs(edge.then - edge.first)));
    const step = Math.min(44, (width - left - 52) / widest), y = (k) => TOP + k * ROW, letters = Math.floor((left - 24) / LETTER + 1e-9);
    const svg = draw("svg", { class: "orders", viewBox: `0 0 ${width} ${y(nodes.length - 1) + TOP}`, style: `max-width:${width}px`, role: "img", "aria-label": "Which event was first; the table below says the same" });
    const chances = [];
    for (const edge of edges.filter((one) => one.p > 0)) {
      const [from, to] = [y(edge.first), y(edge.then)], out = Math.abs(edge.then - edge.first) * step, x = left + DOT + 1, tip = Math.sign(from - to);
      const title = draw("title", {}, `${called(nodes[edge.first])} before ${called(nodes[edge.then])}: ${said(edge.p)}`);
      svg.append(draw("path", { class: edge.sure ? "order" : "order open", d: `M${x} ${from}C${x + out * 1.33} ${from} ${x + out * 1.33} ${to} ${x + 2} ${to}` }, title),
        draw("path", { class: "tip", d: `M${x} ${to}l8 ${tip - 4}v8z` }));
      if (!edge.sure) chances.push(draw("text", { class: "dim chance", x: x + out, y: (from + to) / 2 + 4, "text-anchor": "middle" }, said(edge.p)));
    }
    svg.append(...chances);
    nodes.forEach((one, k) => {
      svg.append(draw("circle", { class: "point", cx: left, cy: y(k), r: DOT }),
        draw("text", { x: left - 10, y: y(k) + 4, "text-anchor": "end" }, cut(called(one), letters), draw("title", {}, called(one))));
    });
    return svg;
  }
  function table(nodes, edges, called) {
    const heads = ["first", "then", "probability", "the other way", events.spans ? "overlapping" : "at one tick"];
    return make("div", { class: "scroll" }, make("table", { class: "events orders-table" },
      make("thead", {}, make("tr", {}, heads.map((one) => make("th", { scope: "col" }, make("small", {}, one))))),
      make("tbody", {}, edges.map((edge) => make("tr", {}, [called(nodes[edge.first]), called(nodes[edge.then]), said(edge.p), said(edge.other), said(edge.neither < 1e-9 ? 0 : edge.neither)].map((text) => make("td", {}, text)))))));
  }
}

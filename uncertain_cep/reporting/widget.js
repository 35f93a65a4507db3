// The page in a frame of its own, in the colours of the notebook; the open match is shared with Python.
const isDark = () => {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  if (vscodeThemeKind) return vscodeThemeKind.includes("dark");
  return document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads allow-modals");
  frame.title = model.get("title");
  frame.style.cssText = "width:100%;border:0";
  frame.style.height = `${model.get("height")}px`;
  frame.srcdoc = model.get("html");
  let open = null;
  const say = (data) => frame.contentWindow && frame.contentWindow.postMessage({ to: "uncertain-cep page", ...data }, "*");
  const paint = () => say({ theme: isDark() ? "dark" : "light" });
  const follow = () => {
    const match = model.get("match");
    if (match && JSON.stringify(match) !== open) say({ match });
  };
  const hear = ({ source, data }) => {
    if (source !== frame.contentWindow || !data || data.from !== "uncertain-cep page") return;
    // The page unpacks its data first, and says when it listens.
    if (data.ready) { paint(); follow(); return; }
    open = JSON.stringify(data.match);
    model.set("match", data.match);
    model.save_changes();
  };
  const resize = () => { frame.style.height = `${model.get("height")}px`; };
  const watched = new MutationObserver(paint);
  for (const one of [document.body, document.documentElement]) watched.observe(one, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme"] });
  addEventListener("message", hear);
  model.on("change:match", follow);
  model.on("change:height", resize);
  el.append(frame);
  return () => {
    watched.disconnect();
    removeEventListener("message", hear);
    model.off("change:match", follow);
    model.off("change:height", resize);
  };
}
export default { render };

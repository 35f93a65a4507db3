// A button beside each block of code that copies it, without the prompts and the output of an example.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      const lines = block.querySelector("pre").textContent.trimEnd().split("\n");
      const typed = lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
      const text = typed.length ? typed.map((line) => line.slice(4)) : lines;
      try {
        await navigator.clipboard.writeText(text.join("\n"));
        button.textContent = "Copied";
      } catch {
        button.textContent = "Press Ctrl+C";
        getSelection().selectAllChildren(block.querySelector("pre"));
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
});

// Draws the diagrams of a page with the site's own copy of mermaid, in the page's colours.
(function () {
  const base = document.currentScript.src.replace(/[^/]*$/, "");
  const blocks = [...document.querySelectorAll(".diagram-source code")];
  if (!blocks.length) return;
  const sources = blocks.map((block) => block.textContent);
  const frames = blocks.map((block) => {
    const frame = document.createElement("div");
    frame.className = "diagram";
    frame.setAttribute("role", "img");
    return frame;
  });

  async function draw() {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral", fontFamily: "inherit" });
    for (const [number, source] of sources.entries()) {
      const { svg } = await mermaid.render(`diagram-${number}`, source);
      frames[number].innerHTML = svg;
      const shown = blocks[number].closest(".diagram-source");
      if (shown) shown.replaceWith(frames[number]);
    }
  }

  const script = document.createElement("script");
  script.src = base + "mermaid.min.js"; // without it the diagram stays as text
  script.onload = () => {
    draw();
    new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  };
  document.head.append(script);
})();

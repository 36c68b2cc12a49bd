"use strict";
// Enlarges the maps of this page, which are whole without it. It asks for nothing.
for (const box of document.querySelectorAll(".zoomable")) {
  const svg = box.querySelector("svg"), map = svg.querySelector(".map");
  const clipped = [...map.querySelectorAll("[clip-path]")].filter(x => !x.parentElement.closest("[clip-path]"));
  const image = map.querySelector("image");
  if (!image || !image.closest("[clip-path]")) continue;
  const clip = image.closest("[clip-path]").getAttribute("clip-path");
  const frame = svg.querySelector(clip.slice(4, -1) + " rect");
  const [left, top, wide, tall] = ["x", "y", "width", "height"].map(name => +frame.getAttribute(name));
  const [west, east, south, north] = map.dataset.extent.split(" ").map(Number);
  const group = () => document.createElementNS(svg.namespaceURI, "g");
  const layers = clipped.filter(x => x.getAttribute("clip-path") === clip).map(part => {
    const still = group(), moved = group();
    still.setAttribute("clip-path", clip);
    moved.setAttribute("class", "moved");
    part.removeAttribute("clip-path");
    part.replaceWith(still);
    still.append(moved);
    moved.append(part);
    return moved;
  });
  const ticks = ["x", "y"].flatMap(axis => [...map.querySelectorAll(`.map-${axis} text`)]
    .filter(x => /^[−\d.,]+$/.test(x.textContent))
    .map(text => ({ text, axis, first: text.textContent, at: +text.parentElement.parentElement.querySelector("use").getAttribute(axis) })));
  const bar = map.querySelector(".scale-bar"), length = map.querySelector(".scale-text text");
  const said = length && length.textContent, shown = bar && bar.getBBox();
  const most = 64;
  let scale = 1, x = 0, y = 0;

  // A round length at the latitude in the middle of what is seen.
  const measure = () => {
    const degrees = bar.dataset.unit === "degrees";
    const middle = south + (1 - (tall / 2 - y) / scale / tall) * (north - south);
    const perUnit = degrees ? bar.dataset.perDegree * Math.cos(middle * Math.PI / 180) : 1;
    const fits = (east - west) / scale * perUnit / 5 * 1.0001, power = 10 ** Math.floor(Math.log10(fits));
    const round = power * [5, 2, 1].find(step => step * power <= fits);
    const grown = scale === 1 ? 1 : round / perUnit / (east - west) * scale * wide / shown.width;
    const where = degrees ? ` km at ${Math.abs(middle).toFixed(0)}° ${middle < 0 ? "S" : "N"}` : " " + bar.dataset.unit;
    bar.setAttribute("transform", `translate(${shown.x * (1 - grown)} 0) scale(${grown} 1)`);
    length.textContent = scale === 1 ? said : round.toLocaleString("en", { maximumFractionDigits: 6 }) + where;
  };
  const draw = () => {
    x = Math.min(0, Math.max(wide * (1 - scale), x));
    y = Math.min(0, Math.max(tall * (1 - scale), y));
    for (const layer of layers) {
      layer.setAttribute("transform", `translate(${left + x} ${top + y}) scale(${scale}) translate(${-left} ${-top})`);
    }
    for (const { text, axis, first, at } of ticks) {
      const share = axis === "x" ? (at - left - x) / scale / wide : 1 - (at - top - y) / scale / tall;
      const value = axis === "x" ? west + share * (east - west) : south + share * (north - south);
      const digits = Math.max(0, Math.ceil(Math.log10(scale * 200 / (east - west))));
      text.textContent = scale === 1 ? first : value.toFixed(digits).replace("-", "−");
    }
    if (bar) measure();
    buttons["+"].disabled = scale >= most;
    buttons["−"].disabled = buttons["Whole map"].disabled = scale === 1;
  };
  const zoom = (by, atX = left + wide / 2, atY = top + tall / 2) => {
    const to = Math.min(most, Math.max(1, scale * by)), ratio = to / scale;
    x = atX - left - (atX - left - x) * ratio;
    y = atY - top - (atY - top - y) * ratio;
    scale = to;
    draw();
  };
  const place = event => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

  const bars = document.createElement("div"), buttons = {};
  bars.className = "zoom-buttons";
  for (const [label, told, act] of [["+", "Enlarge the map", () => zoom(2)], ["−", "Reduce the map", () => zoom(0.5)], ["Whole map", "Show the whole map", () => zoom(0)]]) {
    const button = buttons[label] = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-label", told);
    button.onclick = act;
    bars.append(button);
  }
  box.prepend(bars);
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Map: plus and minus enlarge and reduce it, the arrows move it");
  box.onkeydown = event => {
    const steps = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (steps && scale > 1) { x += steps[0] * wide / 8; y += steps[1] * tall / 8; draw(); }
    else if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else if (event.key === "0") zoom(0);
    else return;
    event.preventDefault();
  };
  // The wheel goes on scrolling the page until the map was chosen, and when it is whole again.
  box.addEventListener("wheel", event => {
    const nearer = event.deltaY < 0;
    if (!(box.matches(":focus-within") || event.ctrlKey) || (nearer ? scale >= most : scale === 1)) return;
    const at = place(event);
    zoom(nearer ? Math.SQRT2 : Math.SQRT1_2, at.x, at.y);
    event.preventDefault();
  }, { passive: false });
  svg.ondblclick = event => { const at = place(event); zoom(2, at.x, at.y); };
  let held = null;
  svg.onpointerdown = event => {
    if (scale === 1) return;
    const at = place(event);
    held = [at.x - x, at.y - y];
    svg.setPointerCapture(event.pointerId);
  };
  svg.onpointermove = event => {
    if (!held) return;
    const at = place(event);
    x = at.x - held[0];
    y = at.y - held[1];
    draw();
  };
  svg.onpointerup = svg.onpointercancel = () => { held = null; };
  draw();
}

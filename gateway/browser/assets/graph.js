// Draws the knowledge graph. The page lists the same graph as text.
(function () {
  "use strict";
  const box = document.getElementById("graph");
  if (!box || !window.cytoscape) return;
  const picked = document.getElementById("picked");
  const zoomStep = 1.25;

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function style() {
    const ink = colour("--ink"), card = colour("--card"), soft = colour("--soft");
    const font = getComputedStyle(document.body).fontFamily.replace(/"/g, "'");
    return [
      { selector: "node", style: { "background-color": colour("--good"), width: 14, height: 14, label: "data(short)", color: ink, "font-size": 10, "font-family": font, "text-wrap": "ellipsis", "text-max-width": "120px", "text-valign": "bottom", "text-margin-y": 4, "text-opacity": 0.75, "min-zoomed-font-size": 11, "text-outline-color": card, "text-outline-width": 2 } },
      { selector: "node[kind='domain']", style: { "background-color": colour("--accent"), shape: "round-rectangle", width: 34, height: 34, "font-size": 17, "font-weight": 600, "text-opacity": 1, "min-zoomed-font-size": 0 } },
      { selector: "node[kind='topic']", style: { "background-color": colour("--blue"), width: 20, height: 20, "font-size": 12, "text-opacity": 1, "min-zoomed-font-size": 7 } },
      { selector: "node[kind='policy']", style: { "background-color": colour("--warn"), shape: "diamond", width: 20, height: 20 } },
      { selector: "edge", style: { width: 1.5, "line-color": soft, opacity: 0.4, "curve-style": "straight" } },
      { selector: "edge[kind!='contains']", style: { width: "mapData(weight, 0, 1, 1, 4)", "line-color": colour("--good"), "line-style": "dashed", opacity: 0.75, "curve-style": "bezier" } },
      { selector: ".dim", style: { opacity: 0.22 } },
      { selector: "node.at", style: { "border-width": 4, "border-color": ink, "font-weight": 600, "font-size": 14, "text-opacity": 1, "text-max-width": "260px", "min-zoomed-font-size": 0, "z-index": 10 } },
      { selector: "node:active, edge:active, core", style: { "overlay-opacity": 0, "active-bg-opacity": 0, "selection-box-color": soft } },
    ];
  }

  function short(text) { const all = Array.from(text); return all.length > 34 ? all.slice(0, 33).join("") + "…" : text; }

  fetch(box.dataset.source, { cache: "no-store" }).then(function (res) {
    if (!res.ok) throw new Error("the graph does not answer");
    return res.json();
  }).then(draw).catch(function (e) { picked.textContent = "The graph cannot be drawn now: " + e.message + ". The list below has it."; });

  function draw(graph) {
    // Nodes start on a spiral, so that the same graph is the same picture.
    const elements = graph.nodes.map(function (n, i) { return { data: Object.assign({ short: short(n.label) }, n), position: { x: 30 * Math.sqrt(i) * Math.cos(2.4 * i), y: 30 * Math.sqrt(i) * Math.sin(2.4 * i) } }; })
      .concat(graph.edges.map(function (e) { return { data: { id: e.source + "|" + e.target + "|" + e.kind, source: e.source, target: e.target, kind: e.kind, weight: e.weight } }; }));
    const cy = window.cytoscape({
      container: box, elements: elements, style: style(), minZoom: 0.1, maxZoom: 5,
      layout: { name: "cose", animate: false, randomize: false, nodeRepulsion: function () { return 4500; }, idealEdgeLength: function (e) { return e.data("kind") === "contains" ? 28 : 60; }, edgeElasticity: function () { return 60; }, gravity: 1.2, numIter: 1200, padding: 30, componentSpacing: 50 },
    });
    let at = null;

    function choose(node) {
      if (at) at.removeClass("at");
      at = node;
      cy.elements().removeClass("dim");
      if (!node) { picked.textContent = ""; return; }
      node.addClass("at");
      cy.elements().not(node.closedNeighborhood()).addClass("dim");
      const d = node.data();
      picked.textContent = d.kind.charAt(0).toUpperCase() + d.kind.slice(1) + ": " + d.label + (d.confidence ? " (confidence " + Math.round(d.confidence * 100) + "%)" : "") + ". Joined to " + node.neighborhood("node").length + ".";
    }
    function open(node) { const link = node && node.data("link"); if (link) window.polyphony.openDrawer(link, null); }

    // The neighbour, or else any node, that lies best in the direction.
    function towards(dx, dy) {
      if (!at) return cy.nodes("[kind='domain']")[0] || cy.nodes()[0];
      const from = at.position();
      function best(nodes) {
        let found = null, least = Infinity;
        nodes.forEach(function (n) {
          const x = n.position().x - from.x, y = n.position().y - from.y, along = x * dx + y * dy;
          if (n === at || along <= 0) return;
          const cost = Math.hypot(x, y) * (1 + 2 * Math.abs(x * dy - y * dx) / along);
          if (cost < least) { least = cost; found = n; }
        });
        return found;
      }
      return best(at.neighborhood("node")) || best(cy.nodes()) || at;
    }
    function zoom(by) { cy.zoom({ level: cy.zoom() * by, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }); }
    function fit() { cy.fit(undefined, 36); }

    cy.on("tap", "node", function (e) { choose(e.target); });
    cy.on("dbltap", "node", function (e) { open(e.target); });
    cy.on("tap", function (e) { if (e.target === cy) choose(null); });
    box.addEventListener("keydown", function (e) {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[e.key];
      if (way) {
        choose(towards(way[0], way[1]));
        const p = at.renderedPosition();
        if (p.x < 40 || p.y < 40 || p.x > cy.width() - 40 || p.y > cy.height() - 40) cy.center(at);
      } else if (e.key === "+" || e.key === "=") zoom(zoomStep);
      else if (e.key === "-") zoom(1 / zoomStep);
      else if (e.key === "0") fit();
      else if (e.key === "Enter") open(at);
      else if (e.key === "Escape") choose(null);
      else return;
      e.preventDefault();
    });
    document.querySelectorAll("[data-graph]").forEach(function (b) {
      b.addEventListener("click", { in: function () { zoom(zoomStep); }, out: function () { zoom(1 / zoomStep); }, fit: fit }[b.dataset.graph]);
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { cy.style(style()); });
    window.polyphony.graph = cy;
    box.dataset.ready = "true";
  }
})();

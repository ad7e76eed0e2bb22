// What scripts add to pages that work without: a drawer, live updates, and
// arrow keys between tabs.
(function () {
  "use strict";
  const lookEvery = 4000; // Milliseconds between looks for changes.
  const drawer = document.getElementById("drawer");
  const drawerBody = document.getElementById("drawer-body");
  const said = document.getElementById("said");
  let opener = null;

  document.documentElement.classList.add("has-script");

  function say(text) { said.textContent = text; }

  // A link to details opens them beside the list; with a key held it is a link.
  document.addEventListener("click", function (e) {
    const link = e.target.closest("a[data-drawer]");
    if (!link || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    openDrawer(link.href, link);
  });

  function openDrawer(address, from) {
    opener = from && from.getAttribute("href");
    htmx.ajax("GET", address, { source: drawerBody, target: drawerBody, select: "#detail", swap: "innerHTML" }).then(function () {
      if (!drawer.open) drawer.showModal();
      drawer.scrollTop = 0;
    });
  }

  // A new answer in the drawer begins at its top, with its problem if it has one.
  document.body.addEventListener("htmx:afterSettle", function (e) {
    if (e.detail.target !== drawerBody) return;
    drawer.scrollTop = 0;
    const alarm = drawerBody.querySelector("[role=alert]");
    if (alarm) { alarm.tabIndex = -1; alarm.focus(); }
  });
  drawer.addEventListener("click", function (e) {
    if (e.target === drawer || e.target.closest("[data-close]")) drawer.close();
  });
  drawer.addEventListener("close", function () {
    drawerBody.replaceChildren();
    look().then(function () {
      const back = opener && document.querySelector('a[href="' + CSS.escape(opener) + '"]');
      if (back) back.focus();
    });
  });

  // Fetch the page again when it changed; never under somebody's hands.
  const main = document.getElementById("main");
  async function look() {
    const tag = main.dataset.tag;
    if (!tag) return;
    let res;
    try {
      res = await fetch(location.href, { headers: { "If-None-Match": '"' + tag + '"' }, cache: "no-store" });
    } catch { return; } // The worker is away; the next look will tell.
    if (res.status !== 200) return;
    const fresh = new DOMParser().parseFromString(await res.text(), "text/html").getElementById("main");
    if (!fresh || !fresh.dataset.tag || fresh.dataset.tag === tag || busy()) return;
    const focus = document.activeElement && document.activeElement.getAttribute("href");
    main.replaceChildren(...fresh.childNodes);
    main.dataset.tag = fresh.dataset.tag;
    if (focus) { const again = main.querySelector('a[href="' + CSS.escape(focus) + '"]'); if (again) again.focus(); }
    say("Updated with what agents wrote.");
  }
  function busy() {
    const at = document.activeElement;
    return drawer.open || !!(at && main.contains(at) && at.matches("input, select, textarea"));
  }
  setInterval(function () {
    if (document.visibilityState === "visible" && !busy()) look();
  }, lookEvery);

  // A changed filter shows its result at once.
  document.addEventListener("change", function (e) {
    const form = e.target.closest("form.filters");
    if (form && e.target.matches("select, input[type=checkbox]")) form.requestSubmit();
  });

  // Arrow keys move between tabs, in the direction of reading; Enter opens one.
  const tabs = Array.from(document.querySelectorAll(".tabs a"));
  tabs.forEach(function (tab, i) {
    tab.addEventListener("keydown", function (e) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      let to = step ? (i + step + tabs.length) % tabs.length : { Home: 0, End: tabs.length - 1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      tabs[to].focus();
    });
  });

  window.polyphony = { openDrawer: openDrawer, say: say };
})();

// Actions that only the browser can take after a change of the URL or a click.

// The last choice of system, operation, pattern and layout: not every page has all of these. What the query of
// a page lacks stands behind the # of its URL.
const CASE = ["s", "o", "p", "r"];
const chosen = {};

const says = (given, key) => given.has(key) && given.get(key) !== "all";

function take(text) {
  const given = new URLSearchParams(text);
  for (const key of CASE) if (says(given, key)) chosen[key] = given.get(key);
}

function lacking(search) {
  const given = new URLSearchParams(search);
  const keys = CASE.filter((key) => chosen[key] && !says(given, key));
  return keys.length ? `#${new URLSearchParams(keys.map((key) => [key, chosen[key]]))}` : "";
}

// Not at each change of the URL: Dash then puts back the # with which the page was loaded.
const takeHash = () => take(window.location.hash.slice(1));
takeHash();
window.addEventListener("popstate", takeHash);

window.dash_clientside = Object.assign({}, window.dash_clientside, {
  switchpoint: {
    // Sets the title, clears the last page's alert, and marks the link of the current page.
    arrived: function (path, pages) {
      const here = path.split("/").pop() || "./";
      const title = new Map(pages).get(here) || "";
      document.title = title ? `${title} · Switchpoint` : "Switchpoint";
      return [title, null, ...pages.map(([link]) => link === here)];
    },

    // Keeps the choice in the links to the pages, and the pinned baseline in that to Compare.
    keepCase: function (search, baseline, pages) {
      take(search || "");
      const hash = lacking(window.location.search);
      if (hash !== window.location.hash)
        window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search + hash);
      const query = (values) => {
        const text = new URLSearchParams({ ...values, k: 1 }).toString();
        return Object.keys(values).length ? `?${text}` : "";
      };
      return pages.map(([link]) => {
        if (link === "./") return link;
        return link + query(link === "compare" ? { ...chosen, ...baseline } : chosen);
      });
    },

    // Pins A of the comparison as the baseline, or lets it go; the button names the pinned one.
    pin: function (clicks, system, campaign, baseline) {
      const clicked = window.dash_clientside.callback_context.triggered_id === "compare-pin";
      const isA = (pinned) => Boolean(pinned) && pinned.t === system && pinned.u === campaign;
      const now = clicked ? (isA(baseline) ? null : { t: system, u: campaign }) : baseline;
      const other = now && !isA(now) ? ` instead of ${now.u}` : "";
      const text = isA(now) ? "A is pinned as baseline" : `Pin A as baseline${other}`;
      return [now || null, text, String(isA(now))];
    },

    // A click on a point selects its size. It is then forgotten: Dash 3 ignores an equal one, also after Back.
    sizeOfPoint: function (click) {
      const size = click && click.points[0].customdata;
      return [Number.isInteger(size) ? String(size) : window.dash_clientside.no_update, null];
    },

    // A click on a tile of the map opens its layout and size, and is forgotten.
    openTile: function (click, link) {
      const [layout, size] = String(click ? click.points[0].customdata : "").split(" ");
      if (size) window.location.assign(`${link}&r=${encodeURIComponent(layout)}&b=${size}`);
      return null;
    },
  },
});

// Maps and tables come as HTML: see `Static` in markup.py.
const insert = (element) => {
  if (element.dataset.html !== undefined) element.innerHTML = element.dataset.html;
};
new MutationObserver((changes) => {
  for (const { type, target, addedNodes } of changes) {
    if (type === "attributes") insert(target);
    for (const added of addedNodes) {
      if (!(added instanceof Element)) continue;
      insert(added);
      added.querySelectorAll("[data-html]").forEach(insert);
    }
  }
}).observe(document, { childList: true, subtree: true, attributeFilter: ["data-html"] });

// Links within pages keep the choice too, also in other tabs: they load their page anew.
document.addEventListener("pointerdown", keepInLink);
document.addEventListener("click", keepInLink);

function keepInLink(event) {
  const link = event.target.closest("a[href]:not([data-reload])"); // with an anchor, these would load nothing
  if (!link || link.origin !== window.location.origin || (link.hash && !link.dataset.kept)) return;
  link.hash = lacking(link.search);
  link.dataset.kept = "true";
}

// A link of the header to what is open loads it anew, as the store may have changed: Dash would do nothing.
document.addEventListener("click", reloadHere, true);

function reloadHere(event) {
  const link = event.target.closest("header a[href]");
  const { pathname, search } = window.location;
  if (!link || link.pathname !== pathname || link.search !== search) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // for another tab
  event.preventDefault();
  event.stopPropagation();
  window.location.reload();
}

// The buttons below a figure save it; the file is named after the figure's element.
document.addEventListener("click", (event) => {
  const form = event.target.dataset && event.target.dataset.save;
  if (!form) return;
  const graph = event.target.closest("figure").querySelector(".dash-graph");
  window.Plotly.downloadImage(graph.querySelector(".js-plotly-plot"), {
    format: form,
    filename: graph.id,
    scale: form === "png" ? 2 : 1,
  });
});

// A button copies its lines; where the browser has no clipboard for us, it selects them.
document.addEventListener("click", (event) => {
  const id = event.target.dataset && event.target.dataset.copy;
  if (!id) return;
  const lines = document.getElementById(id);
  if (!navigator.clipboard) return window.getSelection().selectAllChildren(lines);
  navigator.clipboard.writeText(lines.innerText).then(() => {
    event.target.textContent = "Copied";
    setTimeout(() => (event.target.textContent = "Copy"), 2000);
  });
});

// The text of a file fills a field: a file that a user chooses by its button, or drops on it.
async function fill(button, file) {
  if (fits(button, file)) window.dash_clientside.set_props(button.dataset.file, { value: await file.text() });
}

// Says so if a text is too large: the server would refuse it without a word on the page.
function fits(button, { name, size }) {
  const most = Number(button.dataset.most);
  if (size > most) window.alert(`${name} is larger than ${most / 2 ** 20} MiB: use the command line.`);
  return size <= most;
}

const buttonOf = (field) => document.querySelector(`[data-file="${CSS.escape(field.id)}"]`);

document.addEventListener("paste", (event) => {
  const button = buttonOf(event.target);
  const text = event.clipboardData.getData("text");
  if (button && !fits(button, new File([text], "This text"))) event.preventDefault();
});

for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (event) => {
    const button = buttonOf(event.target);
    if (!button || !event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    if (kind === "drop") fill(button, event.dataTransfer.files[0]);
  });
}

document.addEventListener("click", (event) => {
  if (!event.target.dataset || !event.target.dataset.file) return;
  const input = Object.assign(document.createElement("input"), { type: "file" });
  input.addEventListener("change", () => fill(event.target, input.files[0]));
  input.click();
});

// Paper is narrower than most windows: this lets figures be scaled to it.
window.addEventListener("beforeprint", () => {
  for (const drawn of document.querySelectorAll(".js-plotly-plot .main-svg")) {
    const { width, height } = drawn;
    drawn.setAttribute("viewBox", `0 0 ${width.baseVal.value} ${height.baseVal.value}`);
  }
});

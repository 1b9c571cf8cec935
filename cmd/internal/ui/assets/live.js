// Keeps the page up to date. Everything works without it.
"use strict";

const offline = document.getElementById("offline");
const changed = document.getElementById("changed");
const shown = document.getElementById("main").innerHTML;
let source = null;
let busy = false, again = false;

// The server makes every page: what has changed is taken from a page that is asked for anew.
async function update() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const answer = await fetch(location.href);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.body.dataset.seen = next.body.dataset.seen || "";
    take(next, "state");
    take(next, "tabs");
    if ("keep" in document.body.dataset) changed.hidden = next.getElementById("main")?.innerHTML === shown;
    else if (document.activeElement && document.activeElement.matches("main input")) document.activeElement.addEventListener("blur", update, { once: true });
    else take(next, "main");
  } catch { /* the stream says so too */ }
  busy = false;
  if (again) { again = false; update(); }
}

// take puts what an element holds in the new page in the place of what it holds here, with
// what has the focus kept.
function take(next, id) {
  const here = document.getElementById(id), there = next.getElementById(id);
  if (!here || !there || here.innerHTML === there.innerHTML) return;
  const links = e => [...e.querySelectorAll("a,button,summary")];
  const at = links(here).indexOf(document.activeElement);
  here.replaceChildren(...there.childNodes);
  if (at >= 0) links(here)[at]?.focus({ preventScroll: true });
}

// A page that nobody sees listens to nothing: a browser has few connections to a server.
function listen() {
  if (document.hidden) { source?.close(); source = null; return; }
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource("/live?seen=" + encodeURIComponent(document.body.dataset.seen));
  source.addEventListener("open", () => { offline.hidden = true; });
  source.addEventListener("error", () => { offline.hidden = false; });
  source.addEventListener("change", update);
}

document.addEventListener("visibilitychange", listen);
listen();

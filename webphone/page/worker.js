"use strict";

// The service worker: it opens what is pushed, shows it, and keeps the page for when there is no network.
importScripts("{{wasm_exec.js}}", "{{text.js}}", "{{store.js}}", "{{core.js}}", "{{relay.js}}");

const version = "{{version}}";
const cacheName = `sealpush-${version}`;
const page = new URL("./", location.href).href;
const kept = [page, ...["{{all}}"].map((name) => new URL(name, location.href).href)];

addEventListener("install", (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(cacheName);
    await cache.addAll(kept.map((url) => new Request(url, { cache: url === page ? "reload" : "default" })));
    await skipWaiting();
  })());
});

addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith("sealpush-") && name !== cacheName) await caches.delete(name);
    }
    await clients.claim();
  })());
});

addEventListener("fetch", (event) => {
  const { method, url, mode } = event.request;
  const plain = url.split(/[?#]/)[0];
  if (method !== "GET" || !(kept.includes(url) || (mode === "navigate" && plain === page))) return;
  event.respondWith((async () => {
    const cache = await caches.open(cacheName);
    return (await cache.match(plain)) ?? fetch(event.request);
  })());
});

const maxPush = 4096; // bytes; push services deliver no more
const maxCiphertext = 3800; // characters

const digest = async (value) => {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(value)));
  return Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("");
};

// saw is what a relay had before it: all of a push message, and nothing else.
function saw(push, size) {
  const { suite, ciphertext, collapseId, priority } = push;
  const short = (value) => typeof value === "string" ? value.slice(0, maxCiphertext) : "";
  return { suite: short(suite), ciphertext: short(ciphertext), collapseId: short(collapseId), priority: short(priority), size };
}

// receive shows a notification, whatever was pushed: browsers take the permission from a page that shows none.
async function receive(message) {
  const received = Date.now();
  let push = {};
  let shown;
  try {
    const size = new TextEncoder().encode(message).length;
    if (size > maxPush) throw new Error(`it has ${size} bytes, at most ${maxPush} are read`);
    try {
      push = JSON.parse(message);
    } catch {
      push = null;
    }
    if (push === null || typeof push !== "object" || Array.isArray(push)) {
      push = {};
      throw new Error("it is not what a relay sends");
    }
    shown = push.kind === "digest" && push.ciphertext === undefined ? await digestOf(received) : await alertOf(push, size, received);
  } catch (err) {
    shown = await troubleOf(err, push, received);
  }
  await show(shown);
}

// alertOf opens an alert and keeps it, and returns what to show.
async function alertOf(push, size, received) {
  if (push.v !== 1) throw new Error("it is of another version");
  if (typeof push.ciphertext !== "string" || push.ciphertext.length > maxCiphertext) throw new Error("it has no box to open");
  if (push.suite !== undefined && typeof push.suite !== "string") throw new Error("it names no suite");
  const phone = await store.phone();
  if (!phone) return lost;
  const opened = await core.open(phone, push.suite ?? "", push.ciphertext);
  const box = await digest(push.ciphertext);
  const named = typeof push.collapseId === "string" && /^[0-9a-f]{32}$/.test(push.collapseId);
  const record = {
    box, received, at: opened.at, stale: opened.stale, alert: JSON.parse(opened.json),
    tag: named ? push.collapseId : box.slice(0, 32), saw: saw(push, size),
  };
  let known = { repeated: false, tag: record.tag, id: null };
  try {
    known = await store.addAlert(record);
  } catch (err) {
    console.error("the alert is shown and not kept:", err);
  }
  const { title, body } = text.notification({ ...record, repeated: known.repeated }, received);
  const quiet = record.stale || known.repeated;
  return {
    title, body, tag: known.tag, renotify: !quiet, silent: quiet || push.priority === "passive",
    timestamp: record.at || received, data: { id: known.id, stale: record.stale, repeated: known.repeated },
  };
}

async function digestOf(received) {
  await store.addTrouble({ box: "digest", received, at: received, digest: true }).catch(console.error);
  return {
    title: "More alerts than the relay forwards",
    body: "This month's alerts are used up. There are more of them at your daemons.", tag: "digest", silent: true, data: {},
  };
}

const lost = {
  title: "An alert that this phone cannot read",
  body: "Its key is gone: the browser's storage was cleared. Open the page, set the phone up and pair it again.",
  tag: "lost", renotify: true, data: {},
};

async function troubleOf(err, push, received) {
  const why = text.oneLine(err?.message ?? err).replace(/^(seal|payload): /, "");
  let times = 1;
  try {
    ({ times } = await store.addTrouble({ box: "trouble", received, at: received, error: why, saw: saw(push, 0) }));
  } catch (failed) {
    console.error("not kept:", failed);
  }
  const often = times > 1 ? ` (${times} messages so far)` : "";
  return {
    title: "A message that this phone cannot read",
    body: `${why}${often}. Open the page to see more.`, tag: "trouble", silent: times > 1, data: {},
  };
}

async function show({ title, ...options }) {
  await registration.showNotification(title, { icon: "{{icon-192.png}}", badge: "{{badge-96.png}}", lang: "en", ...options });
  for (const client of await clients.matchAll({ includeUncontrolled: true })) client.postMessage({ type: "alerts" });
}

// One after the other: so alerts are shown as they came, and a flood takes no more memory than its messages.
let turn = Promise.resolve();

function inTurn(work) {
  turn = turn.then(work, work);
  return turn;
}

addEventListener("push", (event) => event.waitUntil(inTurn(() => receive(event.data ? event.data.text() : ""))));

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil((async () => {
    const id = event.notification.data?.id ?? null;
    const [open] = await clients.matchAll({ type: "window", includeUncontrolled: true });
    if (!open) return clients.openWindow(page);
    open.postMessage({ type: "show", id });
    return open.focus();
  })());
});

addEventListener("pushsubscriptionchange", (event) => {
  event.waitUntil((async () => {
    try {
      const phone = await store.phone();
      if (!phone) return;
      const subscription = event.newSubscription ?? (await relay.subscribe(registration, phone.relay));
      await relay.renew(phone, subscription);
      await store.setEndpoint(subscription.endpoint);
    } catch (err) {
      await show({
        title: "Alerts may not reach this phone",
        body: `The browser has changed its address, and the relay could not be told: ${text.oneLine(err.message)}. Open the page to try again.`,
        tag: "subscription", data: {},
      });
    }
  })());
});

// The page's trial goes the way of a push, from the message on.
addEventListener("message", (event) => {
  if (event.data?.type !== "trial" || !event.ports[0]) return;
  event.waitUntil((async () => {
    try {
      const phone = await store.phone();
      if (!phone) throw new Error("this phone is not set up");
      const message = await core.trial(phone, phone.name);
      await inTurn(() => receive(message));
      event.ports[0].postMessage({});
    } catch (err) {
      event.ports[0].postMessage({ error: text.oneLine(err.message) });
    }
  })());
});

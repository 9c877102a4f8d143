"use strict";

// What the phone keeps, in IndexedDB: its key, the daemons it is paired with, and the last alerts.
const store = (() => {
  const maxAlerts = 200;
  const maxSeen = 1000; // boxes that are known again

  const patience = 10 * 1000; // for a storage that never answers
  let opening = null;

  function open() {
    opening ??= new Promise((resolve, reject) => {
      const unusable = (err) => reject(new Error(`the storage of this browser cannot be used: ${err?.message}`));
      setTimeout(() => reject(new Error("the storage of this browser does not answer: close its other windows, or start it anew")), patience);
      let request;
      try {
        request = indexedDB.open("sealpush", 1);
      } catch (err) {
        return unusable(err);
      }
      request.onupgradeneeded = () => {
        const db = request.result;
        db.createObjectStore("settings");
        db.createObjectStore("alerts", { keyPath: "id", autoIncrement: true }).createIndex("box", "box");
        db.createObjectStore("seen", { keyPath: "box" }).createIndex("received", "received");
      };
      request.onerror = () => unusable(request.error);
      request.onblocked = () => reject(new Error("another tab holds the storage"));
      request.onsuccess = () => {
        const db = request.result;
        db.onversionchange = () => { db.close(); opening = null; };
        db.onclose = () => { opening = null; }; // the storage was cleared
        resolve(db);
      };
    }).catch((err) => { opening = null; throw err; });
    return opening;
  }

  const result = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

  // transact runs work, which must wait for nothing but its own requests, and waits until its effects are kept.
  async function transact(names, mode, work) {
    const db = await open();
    const tx = db.transaction(names, mode);
    const done = new Promise((resolve, reject) => {
      tx.oncomplete = resolve;
      tx.onabort = () => reject(tx.error ?? new Error("the storage gave up"));
    });
    try {
      const value = await work(tx);
      await done;
      return value;
    } catch (err) {
      done.catch(() => {});
      try { tx.abort(); } catch { /* it has ended */ }
      throw err;
    }
  }

  const get = (name) => transact("settings", "readonly", (tx) => result(tx.objectStore("settings").get(name)));
  const set = (name, value) => transact("settings", "readwrite", (tx) => result(tx.objectStore("settings").put(value, name)));

  const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
  const fromBase64 = (encoded) => Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));

  // savePhone keeps the phone: secrets are {seed, deviceToken, secret}, encrypted under a key that no script can read out.
  async function savePhone(shown, secrets) {
    const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const document = new TextEncoder().encode(JSON.stringify({ ...secrets, seed: toBase64(secrets.seed) }));
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, document);
    document.fill(0);
    await set("phone", { ...shown, key, iv, sealed });
  }

  // phone returns {suite, publicKey, fingerprint, relay, name, created, seed, deviceToken, secret}, or null.
  async function phone() {
    const kept = await get("phone");
    if (!kept) return null;
    const { key, iv, sealed, ...shown } = kept;
    const document = await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed);
    const secrets = JSON.parse(new TextDecoder().decode(document));
    return { ...shown, ...secrets, seed: fromBase64(secrets.seed) };
  }

  const endpoint = () => get("endpoint");
  const setEndpoint = (url) => set("endpoint", url);

  const daemons = async () => (await get("daemons")) ?? [];

  const addDaemon = (daemon) => transact("settings", "readwrite", async (tx) => {
    const settings = tx.objectStore("settings");
    const all = ((await result(settings.get("daemons"))) ?? []).filter((d) => d.name !== daemon.name || d.via !== daemon.via);
    await result(settings.put([...all, daemon].slice(-50), "daemons"));
  });

  // trim removes the oldest beyond a limit.
  async function trim(source, limit) {
    let surplus = (await result(source.count())) - limit;
    if (surplus <= 0) return;
    await new Promise((resolve, reject) => {
      const request = source.openKeyCursor();
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor || surplus-- <= 0) return resolve();
        (source.objectStore ?? source).delete(cursor.primaryKey);
        cursor.continue();
      };
    });
  }

  // addAlert keeps an alert and says whether its box was delivered before, and under which tag. One that was is counted
  // where it stands.
  const addAlert = (record) => transact(["alerts", "seen"], "readwrite", async (tx) => {
    const alerts = tx.objectStore("alerts"), seen = tx.objectStore("seen");
    const before = await result(seen.get(record.box));
    if (before) {
      const known = await result(alerts.index("box").get(record.box));
      if (known) {
        await result(alerts.put({ ...known, times: known.times + 1, again: record.received }));
        return { repeated: true, tag: before.tag, id: known.id };
      }
      return { repeated: true, tag: before.tag, id: null };
    }
    await result(seen.put({ box: record.box, received: record.received, tag: record.tag }));
    await trim(seen.index("received"), maxSeen);
    const id = await result(alerts.add({ ...record, times: 1 }));
    await trim(alerts, maxAlerts);
    return { repeated: false, tag: record.tag, id };
  });

  // addTrouble keeps one entry for all that could not be read, so that rubbish does not push alerts out.
  const addTrouble = (record) => transact("alerts", "readwrite", async (tx) => {
    const alerts = tx.objectStore("alerts");
    const known = await result(alerts.index("box").get(record.box));
    if (known) await result(alerts.delete(known.id));
    const times = (known?.times ?? 0) + 1;
    const id = await result(alerts.add({ ...record, times }));
    await trim(alerts, maxAlerts);
    return { id, times };
  });

  // alerts returns all that are kept, the last first.
  const alerts = async () => (await transact("alerts", "readonly", (tx) => result(tx.objectStore("alerts").getAll()))).reverse();

  const clearAlerts = () => transact("alerts", "readwrite", (tx) => result(tx.objectStore("alerts").clear()));

  const clear = () => transact(["settings", "alerts", "seen"], "readwrite", async (tx) => {
    for (const name of ["settings", "alerts", "seen"]) await result(tx.objectStore(name).clear());
  });

  return { savePhone, phone, endpoint, setEndpoint, daemons, addDaemon, addAlert, addTrouble, alerts, clearAlerts, clear };
})();

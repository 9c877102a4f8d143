"use strict";

// The page: it sets the phone up, pairs it, and lists its alerts. Opening what is pushed is the worker's work.
(() => {
  const firstAlerts = 40; // that are listed at once
  const refresh = 20 * 1000; // ages grow
  const byId = (id) => document.getElementById(id);
  const origin = location.origin;
  const isApple = /iPad|iPhone|iPod/.test(navigator.userAgent) || (/Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);
  const standalone = matchMedia("(display-mode: standalone)").matches || navigator.standalone === true;

  let registration = null;
  let phone = null; // as store.phone returns it
  let lost = false; // there is a subscription and no key
  let pending = null; // a link that was opened and not yet answered
  let pairing = null; // AbortController of the pairing under way
  let freshFor = 10 * 60 * 1000; // milliseconds; the program knows better
  let listed = firstAlerts;
  let all = []; // the alerts
  let chosen = null; // id of the alert that is compared
  let installer = null;
  const otherTabs = "BroadcastChannel" in globalThis ? new BroadcastChannel("sealpush") : null;

  function node(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === false || value === undefined) continue;
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const say = (id, words) => { byId(id).textContent = words; };
  const show = (id, shown) => { byId(id).hidden = !shown; };

  function fail(err) {
    const words = text.oneLine(err?.message ?? err);
    say("error", words ? words[0].toUpperCase() + words.slice(1) : "");
    show("error", words !== "");
  }

  const settle = () => fail("");

  // busy runs work for a button, which cannot be pressed again meanwhile, and says what went wrong.
  async function busy(button, work) {
    if (button.disabled) return;
    button.disabled = true;
    settle();
    try {
      await work();
    } catch (err) {
      fail(err);
    } finally {
      button.disabled = false;
    }
  }

  // ---- What this browser can do

  function unfit() {
    if (!isSecureContext) return "The page must be served over https: browsers keep keys and receive alerts only then.";
    if (!("serviceWorker" in navigator)) return "It has no service workers. Some browsers have none in a private window: use an ordinary one.";
    if (typeof WebAssembly !== "object") return "It has no WebAssembly, or that is switched off.";
    if (!("indexedDB" in globalThis) || !crypto.subtle) return "It cannot keep a key.";
    if (!("PushManager" in globalThis) || !("Notification" in globalThis)) return "It cannot be woken by alerts. A current Chrome, Edge, Firefox or Safari can.";
    return "";
  }

  const allowed = () => ("Notification" in globalThis ? Notification.permission : "denied");

  function ownName() {
    const agent = navigator.userAgent;
    const browser = /Edg/.test(agent) ? "Edge" : /Firefox/.test(agent) ? "Firefox" : /Chrom/.test(agent) ? "Chrome" : /Safari/.test(agent) ? "Safari" : "Browser";
    const system = /Android/.test(agent) ? "Android" : isApple ? (/iPhone/.test(agent) ? "iPhone" : "iPad") : /Mac/.test(agent) ? "Mac" : /Windows/.test(agent) ? "Windows" : /Linux/.test(agent) ? "Linux" : "";
    return system ? `${browser} on ${system}` : browser;
  }

  // ---- What is shown

  async function render() {
    all = await store.alerts();
    phone = await store.phone(); // another tab may have set it up, or forgotten it
    if (phone !== null) lost = false;
    const why = unfit();
    const mustInstall = isApple && !standalone;
    show("ios", mustInstall);
    show("ios-link", mustInstall && pending !== null);
    show("unfit", why !== "" && !mustInstall);
    say("unfit-why", why);
    const usable = why === "" && !mustInstall;
    const blocked = usable && allowed() === "denied";
    show("denied", blocked);
    show("lost", usable && lost);
    show("setup", usable && !blocked && (phone === null || allowed() !== "granted"));
    byId("invitation").required = phone === null;
    for (const element of byId("setup-form").querySelectorAll("label, input, details, .hint")) element.hidden = phone !== null;
    say("setup-title", phone === null ? "Set up this phone" : "Allow notifications again");
    byId("setup-go").textContent = phone === null ? "Allow notifications and set up" : "Allow notifications";
    if (pending) say("setup-for", pending.kind === "invitation" ? `The relay ${new URL(pending.relay).host} invites this phone.`
      : `${pending.name} asks to pair with this phone. Set it up first${pending.relay === origin ? "" : `, at the relay ${new URL(pending.relay).host}`}.`);
    show("setup-for", phone === null && pending !== null);
    show("install-hint", installer !== null && !standalone);
    show("install", installer !== null);

    const asks = phone !== null && pending !== null && pending.kind !== "invitation" && pairing === null && usable;
    show("asked", asks);
    if (asks) {
      say("asked-name", pending.name);
      say("asked-where", pending.kind === "mailbox" ? `Through the relay ${new URL(pending.relay).host}, which cannot read what is said.`
        : `Directly, at ${pending.url}.` + (origin.startsWith("https:") && !links.usable(pending.url) ? " A browser may refuse that address, because it is not https." : ""));
      show("asked-other", pending.kind === "mailbox" && pending.relay !== phone.relay);
      say("asked-other", `This phone is set up at another relay, ${new URL(phone.relay).host}. Alerts of this daemon will not reach it unless the two are one.`);
    }
    show("pair", phone !== null && usable && !asks && pairing === null); // one thing at a time
    show("phone", phone !== null);
    if (phone) {
      say("own-name", phone.name);
      say("own-fingerprint", phone.fingerprint);
      say("own-relay", new URL(phone.relay).host);
      say("request", relay.pairingRequest(phone));
      const daemons = await store.daemons();
      // Until there is a daemon, pairing is what somebody is here for.
      byId("alerts").parentNode.insertBefore(byId("pair"), byId(daemons.length || all.length ? "phone" : "alerts"));
      say("own-daemons", daemons.length ? daemons.map((d) => d.name).join(", ") : "no daemon that this page knows of");
    }
    say("state", phone === null ? "Not set up" : allowed() !== "granted" ? "Notifications are off" : "Ready for alerts");
    listAlerts();
  }

  async function renderAlerts() {
    all = await store.alerts();
    listAlerts();
  }

  function listAlerts() {
    const now = Date.now();
    show("alerts", phone !== null || all.length > 0);
    show("none", all.length === 0);
    show("clear", all.length > 0);
    const list = byId("list");
    const wanted = all.slice(0, listed);
    const standing = new Map([...list.children].map((item) => [item.dataset.key, item]));
    // Cards that have not changed stay as they are, so that a screen reader is told of new ones alone.
    const cards = wanted.map((record) => {
      const key = `${record.id}/${record.times}/${isOld(record, now)}/${text.age(record.at, now)}`;
      const old = standing.get(key);
      if (old) return old;
      const item = node("li", { class: cardClass(record, now), id: `alert-${record.id}`, "data-key": key }, ...card(record, now, true));
      const before = list.querySelector(`#alert-${record.id}`);
      const open = before?.querySelector("details")?.open;
      if (open && item.querySelector("details")) item.querySelector("details").open = true;
      return item;
    });
    if (cards.length !== list.children.length || cards.some((item, i) => item !== list.children[i])) {
      const focused = document.activeElement?.closest?.("#list > li")?.id;
      list.replaceChildren(...cards);
      if (focused) byId(focused)?.querySelector("button")?.focus({ preventScroll: true });
    }
    show("more", all.length > listed);
    renderComparison(now);
  }

  // announce says to a screen reader what has come.
  function announce() {
    const [last] = all;
    if (last) say("news", `New: ${last.alert ? `${text.headline(last.alert)} on ${text.oneLine(last.alert.host)}` : last.error ? "a message that cannot be read" : "more alerts"}`);
  }

  const isOld = (record, now) => record.stale || !record.at || now - record.at > freshFor;
  const cardClass = (record, now) => `card alert ${record.error ? "failure" : record.digest ? "event" : kindClass(record.alert)}${isOld(record, now) ? " old" : ""}`;
  const kindClass = (alert) => (["failure", "success", "sla", "event", "test"].includes(alert.kind) ? alert.kind : "other");

  const time = (at) => node("time", { datetime: new Date(at).toISOString() },
    new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }));

  function card(record, now, buttons) {
    const label = record.stale ? "Outdated when it came: not a live page" : null;
    const again = record.times > 1 && record.box ? `Delivered ${record.times} times` : null;
    if (record.error) {
      return [
        node("h3", {}, "A message that this phone cannot read"),
        node("p", { class: "meta" }, `${text.age(record.received, now)}`, record.times > 1 ? `, ${record.times} so far` : ""),
        node("p", { class: "why" }, record.error),
        node("p", { class: "hint" }, "Somebody sent something else than an alert that was sealed to this phone, or it was changed on its way. If you have set this phone up anew, a daemon may still seal to its old key: pair it again."),
      ];
    }
    if (record.digest) {
      return [
        node("h3", {}, "More alerts than the relay forwards"),
        node("p", { class: "meta" }, text.age(record.received, now)),
        node("p", {}, "This month's alerts are used up. There are more of them at your daemons."),
      ];
    }
    const alert = record.alert;
    const lines = text.lines(alert);
    const why = text.reason(alert);
    const parts = [
      node("h3", {}, text.headline(alert)),
      node("p", { class: "meta" }, node("span", { class: "kind" }, text.kindName(alert)), ` on ${text.oneLine(alert.host)}, `,
        record.at ? node("time", { datetime: new Date(record.at).toISOString(), title: new Date(record.at).toLocaleString() }, text.age(record.at, now)) : "time unknown",
        buttons && !record.stale && isOld(record, now) ? " (old)" : ""),
    ];
    if (label) parts.push(node("p", { class: "label" }, label));
    if (again && buttons) parts.push(node("p", { class: "label" }, again));
    if (why) parts.push(node("p", { class: "why" }, why));
    const last = 6;
    if (lines.length > 0) parts.push(alert.log_tail ? node("pre", {}, lines.slice(-last).join("\n")) : node("p", { class: "message" }, lines.slice(0, last).join("\n")));
    if (buttons && lines.length > last) {
      parts.push(node("details", {}, node("summary", {}, `All ${lines.length} lines`),
        node("pre", { tabindex: "0", role: "region", "aria-label": "All lines" }, lines.join("\n"))));
    }
    if (buttons) {
      parts.push(node("button", { type: "button", class: "look", onclick: () => compare(record.id) }, "What the relay saw",
        node("span", { class: "hidden" }, ` of ${text.headline(alert)}`)));
    }
    return parts;
  }

  function compare(id) {
    chosen = id;
    renderComparison(Date.now());
    byId("compare-title").scrollIntoView({ block: "start" });
    byId("compare-title").focus({ preventScroll: true });
  }

  function renderComparison(now) {
    const record = all.find((r) => r.id === chosen && r.alert) ?? all.find((r) => r.alert);
    show("compare", record !== undefined);
    if (!record) return;
    const { saw } = record;
    const token = phone?.deviceToken ?? "";
    const facts = [
      ["Time", time(record.received), true],
      ["Device token, a random number", token ? `${token.slice(0, 16)}…` : "…"],
      ["Priority", text.oneLine(saw.priority) || "none"],
      ["Collapse id, the same for the same alert", text.oneLine(saw.collapseId) || "none"],
      ["Daemon event", record.alert.kind === "event" ? "yes" : "no", true],
      ["Suite", text.oneLine(saw.suite) || "x25519"],
      [`Sealed box, ${saw.ciphertext.length} characters`, node("span", { class: "box" }, saw.ciphertext.length > 420 ? `${text.printable(saw.ciphertext.slice(0, 420))}…` : text.printable(saw.ciphertext))],
    ];
    byId("saw").replaceChildren(...facts.flatMap(([name, value, words]) => [node("dt", {}, name), node("dd", { class: words ? "words" : false }, value)]));
    byId("reads").replaceChildren(node("div", { class: cardClass(record, now).replace("card ", "") }, ...card(record, now, false)));
  }

  // ---- Setting up

  // takeLink reads a link that stands where the invitation should: on an iPhone it is copied in Safari, and pasted here.
  function takeLink() {
    const given = byId("invitation").value.trim();
    if (phone !== null || !/^(https?:|\{)/i.test(given)) return;
    openLink(given);
    if (!pending.invitation) {
      throw new Error("This link has no invitation of the relay. Paste the link that sealpush relay prints, or one of sealpush pair -invitation.");
    }
  }

  async function setUp() {
    takeLink();
    // First, because browsers ask only right after a tap.
    if (allowed() !== "granted" && (await Notification.requestPermission()) !== "granted") {
      await render();
      if (allowed() === "default") throw new Error("Without notifications no alert can be shown. Try again, and allow them.");
      return;
    }
    await navigator.locks.request("sealpush", async () => { // tabs in turn, so that they make one phone
      phone = await store.phone();
      if (phone === null) await enroll();
      else await keepSubscribed();
    });
    await render();
    tellTabs();
    byId(byId("asked").hidden ? "pair-title" : "asked-yes").focus();
  }

  const tellTabs = () => otherTabs?.postMessage("changed");

  async function enroll() {
    const form = byId("setup-form");
    const server = pending?.relay ?? origin;
    navigator.storage?.persist?.().catch(() => {});
    const key = await core.generate(form.suite.value);
    const worker = await navigator.serviceWorker.ready;
    const subscription = await relay.subscribe(worker, server);
    const { deviceToken, secret } = await relay.enroll(server, form.invitation.value.trim(), subscription);
    const name = text.oneLine(form.name.value).slice(0, 64) || ownName();
    try {
      await store.setEndpoint(subscription.endpoint);
      await store.savePhone({
        suite: key.suite, publicKey: key.publicKey, fingerprint: key.fingerprint, relay: server, name, created: Date.now(),
      }, { seed: key.seed, deviceToken, secret });
    } catch (err) {
      await relay.forget({ relay: server, deviceToken, secret }).catch(() => {});
      throw new Error(`This browser could not keep the key: ${text.oneLine(err.message)}`);
    } finally {
      key.seed.fill(0);
    }
    phone = await store.phone();
    form.invitation.value = "";
    if (pending?.kind === "invitation") pending = null;
  }

  // keepSubscribed sees to it that the relay has the address under which the browser is reached now.
  async function keepSubscribed() {
    if (!phone || allowed() !== "granted") return;
    try {
      registration ??= await navigator.serviceWorker.ready;
      let subscription = await registration.pushManager.getSubscription();
      subscription ??= await relay.subscribe(registration, phone.relay);
      if (subscription.endpoint !== (await store.endpoint())) {
        await relay.renew(phone, subscription);
        await store.setEndpoint(subscription.endpoint);
      }
      show("silent", false);
    } catch (err) {
      if (!navigator.onLine) return;
      const gone = err.status === 401 || err.status === 404;
      say("silent-why", gone ? "The relay does not know this phone any more. Forget it below, and set it up again."
        : `The relay could not be told how this browser is reached: ${text.oneLine(err.message)}.`);
      show("silent", true);
    }
  }

  async function forget() {
    const dialog = byId("forget-dialog");
    dialog.returnValue = "no";
    dialog.showModal();
    await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
    if (dialog.returnValue !== "yes" || phone === null) return; // another tab may have done it
    pairing?.abort();
    let left = "";
    await relay.forget(phone).catch((err) => { if (err.status !== 404) left = ` ${err.message}: it may keep this phone's address until that is gone.`; });
    await registration.pushManager.getSubscription().then((s) => s?.unsubscribe()).catch(() => {});
    for (const shown of await registration.getNotifications()) shown.close();
    await store.clear();
    phone = null;
    lost = false;
    chosen = null;
    await render();
    tellTabs();
    say("state", "Forgotten");
    if (left) fail(`This phone is forgotten here.${left}`);
  }

  async function trial() {
    say("trial-state", "");
    const worker = (await navigator.serviceWorker.ready).active;
    const channel = new MessageChannel();
    const answer = new Promise((resolve, reject) => {
      channel.port1.onmessage = (event) => resolve(event.data);
      setTimeout(() => reject(new Error("The service worker did not answer. Reload the page, and try again.")), 15000);
    });
    worker.postMessage({ type: "trial" }, [channel.port2]);
    const { error } = await answer;
    if (error) throw new Error(`The test failed: ${error}.`);
    say("trial-state", "A test alert was sealed to this phone, opened and shown as a notification.");
    await renderAlerts();
  }

  // ---- Pairing

  function openLink(given) {
    const link = links.parse(given, origin);
    if (link.kind === "invitation" && phone !== null) throw new Error("This is an invitation to a relay, and this phone is set up already.");
    pending = link;
    if (link.invitation && phone === null) byId("invitation").value = link.invitation;
  }

  async function takeFragment() {
    const given = location.hash.slice(1);
    if (given === "") return;
    // What is in the address bar is seen by whoever looks, and kept in the history.
    history.replaceState(null, "", location.pathname + location.search);
    byId("ios-copy").onclick = async () => {
      await navigator.clipboard.writeText(`${origin}${location.pathname}#${given}`);
      say("ios-copied", "Copied.");
    };
    try {
      openLink(given);
    } catch (err) {
      fail(err);
    }
    await render();
    if (!byId("asked").hidden) byId("asked-yes").focus();
  }

  async function pair() {
    const link = pending;
    pairing = new AbortController();
    say("waiting-fingerprint", phone.fingerprint);
    say("waiting-name", link.name);
    say("waiting-state", link.kind === "mailbox" ? "Leaving the request at the relay…" : "Asking the daemon…");
    show("waiting", true);
    await render();
    byId("waiting").scrollIntoView({ block: "nearest" });
    byId("waiting-title").focus({ preventScroll: true });
    try {
      const name = link.kind === "mailbox"
        ? await relay.pairByMailbox(phone, link, pairing.signal, () => say("waiting-state", "The request is there. Waiting for the daemon…"))
        : await relay.pairDirectly(phone, link, pairing.signal);
      await store.addDaemon({ name, via: link.kind === "mailbox" ? new URL(link.relay).host : link.url, paired: Date.now() });
      tellTabs();
      say("state", `Paired with ${name}`);
      pending = null;
      return name;
    } catch (err) {
      if (pairing.signal.aborted) return null;
      if (link.kind === "mailbox" && [403, 404, 409].includes(err.status)) pending = null; // trying again helps nobody
      throw err;
    } finally {
      pairing = null;
      show("waiting", false);
      const words = byId("state").textContent;
      await render();
      if (words.startsWith("Paired")) say("state", words);
    }
  }

  async function scan() {
    const dialog = byId("scan-dialog"), video = byId("video");
    const detector = new BarcodeDetector({ formats: ["qr_code"] });
    say("scan-state", "");
    const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false })
      .catch(() => { throw new Error("The camera cannot be used. Open the phone's camera app instead, or paste the link."); });
    dialog.showModal();
    video.srcObject = stream;
    let open = true;
    dialog.addEventListener("close", () => { open = false; }, { once: true });
    try {
      await video.play();
      while (open) {
        for (const { rawValue } of await detector.detect(video)) {
          try {
            openLink(rawValue);
            open = false;
          } catch (err) {
            say("scan-state", err.message);
          }
        }
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
    } finally {
      for (const track of stream.getTracks()) track.stop();
      video.srcObject = null;
      dialog.close();
    }
    await render();
  }

  // ---- Start

  function listen() {
    byId("setup-form").addEventListener("submit", (event) => {
      event.preventDefault();
      busy(byId("setup-go"), setUp);
    });
    byId("invitation").addEventListener("input", () => {
      try {
        takeLink();
      } catch { /* it may not be all of it: said when the form is sent */ }
      render().catch(fail);
    });
    byId("pair-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const field = byId("link");
      say("link-error", "");
      try {
        openLink(field.value);
        field.value = "";
        field.removeAttribute("aria-invalid");
        await render();
        byId("asked").scrollIntoView({ block: "nearest" });
        byId("asked-yes").focus();
      } catch (err) {
        say("link-error", err.message);
        field.setAttribute("aria-invalid", "true");
        field.focus();
      }
    });
    byId("asked-yes").addEventListener("click", () => busy(byId("asked-yes"), pair));
    byId("asked-no").addEventListener("click", () => { pending = null; render(); });
    byId("waiting-stop").addEventListener("click", () => pairing?.abort(new Error("stopped")));
    byId("scan").addEventListener("click", () => busy(byId("scan"), scan));
    byId("trial").addEventListener("click", () => busy(byId("trial"), trial));
    byId("forget").addEventListener("click", () => busy(byId("forget"), forget));
    byId("again").addEventListener("click", () => busy(byId("again"), keepSubscribed));
    byId("reload").addEventListener("click", () => location.reload());
    byId("more").addEventListener("click", () => { listed = Infinity; renderAlerts(); });
    byId("clear").addEventListener("click", () => busy(byId("clear"), async () => { await store.clearAlerts(); await renderAlerts(); tellTabs(); }));
    byId("copy").addEventListener("click", () => busy(byId("copy"), async () => {
      await navigator.clipboard.writeText(relay.pairingRequest(phone));
      say("copied", "Copied.");
    }));
    byId("install").addEventListener("click", () => { installer?.prompt(); installer = null; render(); });
    addEventListener("beforeinstallprompt", (event) => { event.preventDefault(); installer = event; render(); });
    addEventListener("hashchange", takeFragment);
    otherTabs?.addEventListener("message", () => render().catch(fail));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) render(); });
    navigator.permissions?.query({ name: "notifications" }).then((status) => { status.onchange = render; }).catch(() => {});
    setInterval(() => { if (!document.hidden) renderAlerts().catch(() => {}); }, refresh);
  }

  async function start() {
    say("origin", location.host);
    byId("phone-name").value = ownName();
    listen();
    if (unfit() === "" && !(isApple && !standalone)) {
      if ("BarcodeDetector" in globalThis && navigator.mediaDevices) {
        BarcodeDetector.getSupportedFormats().then((formats) => show("scan", formats.includes("qr_code"))).catch(() => {});
      }
      navigator.serviceWorker.addEventListener("message", (event) => {
        if (event.data?.type === "show" && event.data.id !== null) {
          renderAlerts().then(() => {
            const item = byId(`alert-${event.data.id}`);
            item?.classList.add("shown");
            item?.scrollIntoView({ block: "center" });
          });
        } else if (event.data?.type === "alerts") renderAlerts().then(announce).catch(fail);
      });
      let controlled = navigator.serviceWorker.controller !== null;
      navigator.serviceWorker.addEventListener("controllerchange", () => {
        show("newer", controlled); // the first one is not newer than the page
        controlled = true;
      });
      phone = await store.phone();
      await render(); // what is known already
      registration = await navigator.serviceWorker.register("worker.js", { scope: "./", updateViaCache: "none" })
        .catch(async (err) => (await navigator.serviceWorker.getRegistration()) ?? Promise.reject(err));
      lost = phone === null && (await registration.pushManager.getSubscription()) !== null;
    }
    if (location.hash.length > 1) await takeFragment();
    await render();
    document.documentElement.dataset.ready = "true";
    if (phone !== null) await keepSubscribed();
    if (registration) freshFor = await core.freshFor();
  }

  start().catch((err) => {
    fail(err);
    document.documentElement.dataset.ready = "true";
  });
})();

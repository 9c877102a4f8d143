"use strict";

// What the phone asks of its relay, and of a daemon that it can reach itself.
const relay = (() => {
  const maxAnswer = 64 * 1024; // bytes
  const timeout = 20 * 1000;
  const longPoll = 40 * 1000; // a relay holds a request for 25 s

  // A Refusal is an answer that is no success. Status is 0 when there was none.
  class Refusal extends Error {
    constructor(status, message) {
      super(message);
      this.status = status;
    }
  }

  // either ends with one or the other. Browsers of before 2024 have no way to say that, and wait for the limit alone.
  const either = (signal, limit) => (signal && AbortSignal.any ? AbortSignal.any([signal, limit]) : limit);

  // read returns the body as text, and gives up where it is too long.
  async function read(response) {
    if (!response.body) return "";
    const reader = response.body.getReader();
    const chunks = [];
    for (let size = 0; ;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > maxAnswer) {
        reader.cancel();
        throw new Refusal(response.status, "the answer is too long");
      }
      chunks.push(value);
    }
    return new Blob(chunks).text();
  }

  async function send(url, { method = "GET", bearer, body, type, wait = timeout, signal } = {}) {
    const headers = {};
    if (bearer) headers.Authorization = `Bearer ${bearer}`;
    if (type) headers["Content-Type"] = type;
    const limit = AbortSignal.timeout(wait);
    let response;
    try {
      response = await fetch(url, {
        method, headers, body, signal: either(signal, limit),
        cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
      });
      return { status: response.status, type: response.headers.get("Content-Type") ?? "", body: await read(response) };
    } catch (err) {
      if (signal?.aborted || err instanceof Refusal) throw err;
      throw new Refusal(0, limit.aborted ? `${new URL(url).host} did not answer in time` : `${new URL(url).host} could not be reached`);
    }
  }

  function object(answer) {
    try {
      const value = JSON.parse(answer.body);
      if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
    } catch { /* said by the caller */ }
    return null;
  }

  // json sends a request and returns the object that it is answered with.
  async function json(url, what, options) {
    const answer = await send(url, options);
    const value = object(answer);
    if (answer.status >= 200 && answer.status < 300 && (value || answer.body === "")) return value;
    const host = new URL(url).host;
    if (!value) {
      const kind = /html/i.test(answer.type) ? "a web page" : "something else";
      throw new Refusal(answer.status, `${host} answered ${answer.status} with ${kind} where ${what} was expected`);
    }
    const said = typeof value.error === "string" ? text.oneLine(value.error) : "no reason given";
    throw new Refusal(answer.status, `${host} answered ${answer.status}: ${said}`);
  }

  const fromBase64url = (encoded) => Uint8Array.from(atob(encoded.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

  // serverKey is what the relay signs its pushes with.
  async function serverKey(origin) {
    const { publicKey } = (await json(`${origin}/subscriptions`, "a relay's key")) ?? {};
    if (typeof publicKey !== "string" || !/^[A-Za-z0-9_-]{87}$/.test(publicKey)) {
      throw new Refusal(200, `${new URL(origin).host} is no relay for web phones: it gives no key`);
    }
    return fromBase64url(publicKey);
  }

  // subscribe asks the browser for a subscription to the relay's pushes, in place of one to another relay's.
  async function subscribe(registration, origin) {
    const options = { userVisibleOnly: true, applicationServerKey: await serverKey(origin) };
    try {
      try {
        return await registration.pushManager.subscribe(options);
      } catch (err) {
        const old = err.name === "InvalidStateError" && (await registration.pushManager.getSubscription());
        if (!old) throw err;
        await old.unsubscribe();
        return await registration.pushManager.subscribe(options);
      }
    } catch (err) {
      throw new Error(`The browser could not subscribe at its push service: ${text.oneLine(err.message)}`);
    }
  }

  // enroll makes a device token of a subscription.
  async function enroll(origin, invitation, subscription) {
    let answer;
    try {
      answer = await json(`${origin}/subscriptions`, "a device token", {
        method: "POST", bearer: invitation, type: "application/json", body: JSON.stringify(subscription.toJSON()),
      });
    } catch (err) {
      if (err.status === 401) throw new Refusal(401, "The relay does not know this invitation. Take the one that it shows now.");
      throw err;
    }
    const { deviceToken, secret } = answer ?? {};
    if (typeof deviceToken !== "string" || !/^[0-9a-f]{64}$/.test(deviceToken) || typeof secret !== "string" || secret.length > 512) {
      throw new Refusal(200, `${new URL(origin).host} is no relay for web phones: it gives no device token`);
    }
    return { deviceToken, secret };
  }

  // renew gives the relay a new subscription for a device token that stays.
  async function renew(phone, subscription) {
    await json(`${phone.relay}/subscriptions`, "a device token", {
      method: "POST", bearer: phone.secret, type: "application/json",
      body: JSON.stringify({ ...subscription.toJSON(), deviceToken: phone.deviceToken }),
    });
  }

  const forget = (phone) => json(`${phone.relay}/subscriptions/${phone.deviceToken}`, "nothing", { method: "DELETE", bearer: phone.secret });

  // pairingRequest is what a daemon learns of this phone.
  const pairingRequest = (phone) => JSON.stringify({
    name: phone.name, platform: "web", publicKey: phone.publicKey, pushToken: phone.deviceToken, suite: phone.suite,
  });

  const pause = (ms, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });

  // pairByMailbox leaves the phone's request where the daemon looks for it, and waits for the daemon's answer.
  async function pairByMailbox(phone, link, signal, left) {
    const box = `${link.relay}/mailboxes/${link.mailbox}`;
    const sealed = await core.seal(link.key, pairingRequest(phone));
    const put = await send(`${box}/request`, { method: "PUT", type: "text/plain", body: sealed, signal });
    if (put.status === 404) throw new Refusal(404, "This link has expired. Run sealpush pair again, and take the new one.");
    if (put.status === 409) {
      throw new Refusal(409, "Somebody has answered this link already. If that was not you, stop sealpush pair and start it again.");
    }
    if (put.status === 429) throw new Refusal(429, "The relay is asked too often from this network. Wait a minute, and try again.");
    if (put.status >= 300) throw new Refusal(put.status, `The relay did not take the request (${put.status}): ${said(put)}`);
    left();
    const deadline = Date.now() + 11 * 60 * 1000; // a mailbox lives for ten
    for (let wait = 1000; Date.now() < deadline;) {
      let answer;
      try {
        answer = await send(`${box}/answer`, { wait: longPoll, signal });
      } catch (err) {
        if (signal?.aborted) throw err;
        await pause(wait, signal); // the network comes back, or the deadline comes
        wait = Math.min(2 * wait, 15000);
        continue;
      }
      if (answer.status === 404) throw new Refusal(404, "The daemon did not answer in time, or has stopped. Run sealpush pair again.");
      if (answer.status === 204 || answer.status === 429 || answer.status >= 500) {
        await pause(answer.status === 204 ? 200 : 5000, signal);
        continue;
      }
      if (answer.status !== 200) throw new Refusal(answer.status, `The relay answered ${answer.status}: ${said(answer)}`);
      let verdict;
      try {
        verdict = JSON.parse(await core.openText(phone, answer.body.trim()));
      } catch {
        throw new Refusal(200, "The answer in the mailbox is not the daemon's: it was not sealed to this phone. Do not trust this pairing.");
      }
      if (verdict?.v !== 1 || typeof verdict.paired !== "boolean") throw new Refusal(200, "The daemon's answer cannot be read.");
      if (verdict.mailbox !== link.mailbox) { // a relay could keep it, and say that this daemon has paired the phone
        throw new Refusal(200, "The answer in the mailbox is of another pairing. Do not trust this one.");
      }
      if (!verdict.paired) {
        throw new Refusal(403, `The daemon did not pair this phone${verdict.error ? `: ${text.oneLine(verdict.error)}` : "."}`);
      }
      return text.oneLine(verdict.name) || link.name;
    }
    throw new Refusal(0, "The daemon did not answer in time. Run sealpush pair again.");
  }

  const said = (answer) => text.oneLine(object(answer)?.error ?? "no reason given");

  // pairDirectly hands the request to the daemon's pairing API.
  async function pairDirectly(phone, link, signal) {
    let answer;
    try {
      answer = await json(`${link.url}/push/devices`, "a pairing API", {
        method: "POST", bearer: link.token, type: "application/json", body: pairingRequest(phone), signal,
      });
    } catch (err) {
      if (err.status === 401) throw new Refusal(401, "The daemon does not know this link's token. Make a new link.");
      if (err.status === 0) {
        throw new Refusal(0, `${err.message}. The daemon must be reachable over https and let this page in, or be on this machine. ` +
          "Otherwise paste the pairing request below into sealpush pair.");
      }
      throw err;
    }
    const device = answer?.device;
    if (typeof device?.fingerprint !== "string") throw new Refusal(200, `${new URL(link.url).host} is no pairing API: it names no phone`);
    if (device.fingerprint !== phone.fingerprint) {
      throw new Refusal(200, "The daemon has another fingerprint than this phone: somebody in between has put in a key of theirs. Revoke that phone.");
    }
    return link.name;
  }

  return { Refusal, subscribe, enroll, renew, forget, pairingRequest, pairByMailbox, pairDirectly };
})();

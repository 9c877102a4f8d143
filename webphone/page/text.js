"use strict";

// What an alert says, in words. Nothing here is trusted to be short or to be printable.
const text = (() => {
  const minute = 60 * 1000;
  const bodyLines = 6; // of a notification
  const lineLength = 200; // characters of a line in a notification

  // printable keeps what others wrote from steering what is shown: control characters, and those that turn the direction
  // of text around.
  function printable(value) {
    return String(value ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  }

  function oneLine(value) {
    const line = printable(value).replace(/\s+/g, " ").trim();
    return line.length > lineLength ? line.slice(0, lineLength) + "…" : line;
  }

  // Maps, because an object also has what every object has: a kind could be "constructor".
  const kinds = new Map([["failure", "Failed"], ["success", "Succeeded"], ["sla", "Service level"], ["event", "Event"], ["test", "Test"]]);
  const checks = new Map([["maxTimeSinceSuccess", "no success for too long"], ["lateAfter", "late"], ["maxRuntime", "runs too long"]]);

  const kindName = (alert) => kinds.get(alert.kind) ?? oneLine(alert.kind);

  function headline(alert) {
    const name = oneLine(alert.name);
    switch (alert.kind) {
      case "failure": return `${name} failed`;
      case "success": return `${name} succeeded`;
      case "sla": return `${name}: ${checks.get(alert.sla_check) ?? (oneLine(alert.sla_check) || "service level")}`;
      case "event": return alert.subject ? oneLine(alert.subject) : `${name}: ${oneLine(alert.event)}`;
      case "test": return "Test alert";
    }
    return `${name}: ${oneLine(alert.kind)}`;
  }

  const seconds = (n) => Number.isFinite(n) ? duration(n * 1000) : "";

  function duration(ms) {
    const s = Math.abs(ms) / 1000;
    if (s < 60) return `${Number(s.toPrecision(3))} s`;
    if (s < 100 * 60) return `${Math.round(s / 60)} min`;
    if (s < 48 * 3600) return `${Math.round(s / 3600)} h`;
    return `${Math.round(s / 86400)} days`;
  }

  // age is how long ago a time was, in milliseconds since 1970; a clock that is ahead is not worth a word below a minute.
  function age(at, now) {
    if (!at) return "time unknown";
    const ms = now - at;
    if (Math.abs(ms) < minute) return "just now";
    return ms < 0 ? `in ${duration(ms)} (a clock is wrong)` : `${duration(ms)} ago`;
  }

  // reason is what an alert says besides its headline, one sentence.
  function reason(alert) {
    switch (alert.kind) {
      case "sla": {
        const observed = seconds(alert.observed_seconds), threshold = seconds(alert.threshold_seconds);
        return observed && threshold ? `${observed}, allowed are ${threshold}` : "";
      }
      case "event": return oneLine(alert.name === alert.dag || !alert.name ? alert.event : `${alert.name}: ${alert.event}`);
    }
    if (alert.fail_reason) return oneLine(alert.fail_reason);
    return Number.isInteger(alert.exit_code) && alert.exit_code !== 0 ? `exit status ${alert.exit_code}` : "";
  }

  // lines are the log tail of an alert, or its message.
  function lines(alert) {
    const all = Array.isArray(alert.log_tail) && alert.log_tail.length > 0 ? alert.log_tail : String(alert.message ?? "").split("\n");
    return all.map(printable).filter((line) => line.trim() !== "");
  }

  // notification is what the platform is asked to show for an alert.
  function notification(record, now) {
    const { alert, at, stale, repeated } = record;
    const body = [];
    let title = `${headline(alert)} on ${oneLine(alert.host)}`;
    if (stale) {
      title = `Outdated: ${title}`;
      body.push(at ? `Built ${age(at, now)}: not a live page` : "It does not say when it was built: not a live page");
    } else if (repeated) {
      title = `Again: ${title}`;
      body.push("The same message was delivered before");
    }
    const why = reason(alert);
    if (why) body.push(why);
    body.push(...lines(alert).slice(-bodyLines).map(oneLine));
    return { title, body: body.join("\n") };
  }

  return { printable, oneLine, kindName, headline, reason, lines, age, duration, notification };
})();

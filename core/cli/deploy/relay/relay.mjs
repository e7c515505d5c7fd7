// Passes notices of approvals on to Slack, Microsoft Teams or a mailbox. Needs Node 20 and no package.
//
//   WEBHOOK_SECRET  one of the webhook's secrets, `whsec_…`
//   RELAY_TO        slack, teams or mail
//   RELAY_URL       slack, teams: the URL of the incoming webhook
//   MAIL_FROM, MAIL_TO, SENDMAIL   mail: the addresses, and the program (default /usr/sbin/sendmail)
//   PORT, HOST      where it listens (default 8090 on 127.0.0.1)
import { spawn } from "node:child_process";
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const maxBytes = 32_768;
const maxSkewSeconds = 300;
const maxRemembered = 10_000;
const forwardMs = 8_000;

const secret = Buffer.from((process.env.WEBHOOK_SECRET ?? "").replace(/^whsec_/, ""), "base64");
const senders = { slack: sendSlack, teams: sendTeams, mail: sendMail };
const send = senders[process.env.RELAY_TO];
if (secret.length < 24 || send === undefined) {
  process.stderr.write("expected WEBHOOK_SECRET=whsec_… and RELAY_TO=slack, teams or mail\n");
  process.exit(2);
}

/** Ids of notices that were passed on: the gateway sends each at least once. */
const passedOn = new Set();

const server = createServer(async (request, response) => {
  response.statusCode = await receive(request).catch(() => 502); // the gateway tries again
  response.end();
});
server.listen(Number(process.env.PORT ?? 8090), process.env.HOST ?? "127.0.0.1", () => {
  process.stdout.write(`relay: listening on ${server.address().port}\n`);
});
process.once("SIGTERM", () => server.close(() => process.exit(0)));

/** Returns the status to answer with. */
async function receive(request) {
  const body = await readBody(request);
  if (body === undefined) return 413;
  const id = request.headers["webhook-id"];
  if (request.method !== "POST" || !isSigned(request.headers, body)) return 401;
  if (passedOn.has(id)) return 204;
  const notice = JSON.parse(body);
  await send(messageOf(notice));
  passedOn.add(id);
  if (passedOn.size > maxRemembered) passedOn.delete(passedOn.values().next().value);
  return 204;
}

async function readBody(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** As Standard Webhooks says: an HMAC over id, time and body, and a time that is near. */
function isSigned({ "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signatures = "" }, body) {
  const age = Math.abs(Date.now() / 1_000 - Number(time));
  if (!(age <= maxSkewSeconds)) return false;
  const expected = createHmac("sha256", secret).update(`${id}.${time}.${body}`).digest();
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ""), "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** Title, facts and link of a notice. Tools and servers are named by others: what is not seen as itself is escaped. */
function messageOf({ type, data }) {
  const facts = {
    Action: `${data.capability} ${data.tool} on ${data.target}`,
    Rules: data.rules.join(", "),
    Risk: `${data.risk} of 100`,
    ...(data.tainted.length > 0 ? { Tainted: data.tainted.join(", ") } : {}),
    Reviewers: `${data.endorsed} of ${data.required}`,
    "Expires at": data.expires_at,
    Approval: data.id,
  };
  const shown = Object.entries(facts).map(([name, text]) => [name, visible(text)]);
  return {
    title: visible(`Approval ${type.replace("approval.", "")}: ${data.tool}`),
    facts: shown,
    link: data.review_url ?? null,
  };
}

function visible(text) {
  return String(text).replace(/[^ \p{L}\p{M}\p{N}\p{P}\p{S}]/gu, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);
}

async function post(payload) {
  const response = await fetch(process.env.RELAY_URL, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(payload),
    signal: AbortSignal.timeout(forwardMs),
  });
  if (!response.ok) throw new Error(`expected 2xx, got ${response.status}`);
}

/** Slack reads three characters as its own; a text in `plain_text` it reads as it is. */
function sendSlack({ title, facts, link }) {
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const lines = facts.map(([name, text]) => ({ type: "plain_text", text: `${name}: ${text}`.slice(0, 2_000) }));
  return post({
    text: escaped(title),
    blocks: [
      { type: "header", text: { type: "plain_text", text: title.slice(0, 150) } },
      { type: "section", fields: lines },
      ...(link === null ? [] : [{ type: "section", text: { type: "mrkdwn", text: `<${escaped(link)}|Review it>` } }]),
    ],
  });
}

/** An Adaptive Card, as a workflow of Teams takes it. Text runs have no Markdown. */
function sendTeams({ title, facts, link }) {
  const paragraph = (...inlines) => ({ type: "RichTextBlock", inlines });
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      paragraph({ type: "TextRun", text: title, size: "Large", weight: "Bolder" }),
      ...facts.map(([name, text]) =>
        paragraph({ type: "TextRun", text: `${name}: `, weight: "Bolder" }, { type: "TextRun", text }),
      ),
    ],
    actions: link === null ? [] : [{ type: "Action.OpenUrl", title: "Review it", url: link }],
  };
  const card = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
  return post({ type: "message", attachments: [card] });
}

/** Hands a mail to the mail server of this machine. Subject and text are encoded: nothing in them is a header. */
function sendMail({ title, facts, link }) {
  const lines = [...facts.map(([name, text]) => `${name}: ${text}`), "", link ?? "gateway approvals list"];
  const base64 = Buffer.from(`${lines.join("\n")}\n`)
    .toString("base64")
    .replace(/.{76}/g, "$&\n");
  const headers = [
    `From: ${process.env.MAIL_FROM}`,
    `To: ${process.env.MAIL_TO}`,
    `Subject: =?utf-8?B?${Buffer.from(Array.from(title).slice(0, 40).join("")).toString("base64")}?=`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: base64",
    "Auto-Submitted: auto-generated",
  ];
  return new Promise((resolve, reject) => {
    const sendmail = spawn(process.env.SENDMAIL ?? "/usr/sbin/sendmail", ["-i", "-t"], {
      stdio: ["pipe", "ignore", "inherit"],
      timeout: forwardMs,
    });
    sendmail.once("error", reject);
    sendmail.stdin.once("error", reject);
    sendmail.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`sendmail ended with ${code}`))));
    sendmail.stdin.end(`${headers.join("\n")}\n\n${base64}\n`);
  });
}

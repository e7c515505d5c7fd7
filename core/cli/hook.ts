import { GatewayError } from "../action/error.ts";
import { asciiJson, type JsonObject } from "../action/json.ts";
import { escapeHidden } from "../action/visible-text.ts";
import { identity } from "../compose/identity.ts";
import {
  type AgentForm,
  decisionHeader,
  errorHeader,
  type HookEffect,
  maxHookAnswerBytes,
  readHookAnswer,
} from "../gateway/hook/agent-form.ts";
import { agentForms, type HookAgent } from "../gateway/hook/hook-agent.ts";
import { plainUrl, readBounded, requireKey } from "./gateway-port.ts";
import { print, say } from "./print.ts";

interface HookOptions {
  readonly url: string;
  /** Seconds. */
  readonly wait: number;
  readonly printSettings?: true;
  readonly http?: true;
  readonly json?: true;
}

/** The exit code that agents take for a refusal, whatever was printed. */
const refusedCode = 2;
const maxPayloadBytes = 8 * 1024 * 1024;
/** Time for everything but the wait for a review. */
const spareMs = 10_000;

/**
 * `gateway hook`. Asks the gateway about the tool call on standard input, and answers in the agent's form. Whatever goes wrong
 * is a refusal with exit code 2: agents let the tool run after every other failure.
 */
export async function answerHook(agent: HookAgent, options: HookOptions): Promise<void> {
  const form = agentForms[agent];
  if (options.printSettings) return printSettings(agent, form, options);
  const signal = AbortSignal.timeout(options.wait * 1_000 + spareMs);
  try {
    const [answer, effect] = await askGateway(agent, form, options, signal);
    // An empty object says nothing, and is nothing to print.
    if (Object.keys(answer).length > 0) print(asciiJson(answer));
    process.exitCode = form.exitCodes[effect];
  } catch (cause) {
    const reason = reasonOf(cause, signal);
    print(asciiJson(form.answer({ decision: "block", reason })));
    say(reason);
    process.exitCode = refusedCode;
  } finally {
    process.stdin.destroy();
  }
}

function printSettings(agent: HookAgent, form: AgentForm, { url, wait, http, json }: HookOptions): void {
  const settings = http ? form.httpSettings : form.settings;
  if (settings === undefined)
    throw new GatewayError("INVALID_PARAMS", `expected no \`--http\`: \`${agent}\` has no such hooks`);
  const shown = settings({ url: plainUrl(url), waitSeconds: wait });
  print(json ? asciiJson(shown) : JSON.stringify(shown, null, 2));
}

async function askGateway(
  agent: HookAgent,
  form: AgentForm,
  { url, wait }: HookOptions,
  signal: AbortSignal,
): Promise<[JsonObject, HookEffect]> {
  const key = requireKey();
  const payload = await readPayload(signal);
  const response = await fetch(`${plainUrl(url)}/v1/hooks/${agent}?wait_ms=${wait * 1_000}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key, "user-agent": `gateway-hook/${identity.version}` },
    body: payload,
    redirect: "error",
    signal,
  }).catch((cause: unknown) => {
    throw new GatewayError("GATEWAY_UNREACHABLE", "check that it runs, and `--url`", { cause });
  });
  const body = await readBounded(response.body ?? [], maxHookAnswerBytes, "the gateway's answer");
  if (response.status !== 200)
    throw new GatewayError("UPSTREAM_INVALID", `expected status 200, got ${response.status}; check \`--url\``);
  const [answer, effect] = readHookAnswer(form, response.headers.get(decisionHeader), body);
  const code = response.headers.get(errorHeader);
  if (code !== null) throw new HookRefusal(answer, code);
  return [answer, effect];
}

/** An answer of the gateway that says that it could not decide. */
class HookRefusal extends Error {
  constructor(answer: JsonObject, code: string) {
    const { reason, hookSpecificOutput } = answer as { reason?: string; hookSpecificOutput?: JsonObject };
    super(String(reason ?? hookSpecificOutput?.permissionDecisionReason ?? code));
  }
}

/** Reads standard input to its end; rejects when the time is over. */
async function readPayload(signal: AbortSignal): Promise<Buffer<ArrayBuffer>> {
  const stop = (): void => void process.stdin.destroy(new Error("the time is over"));
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await readBounded(process.stdin, maxPayloadBytes, "the payload of the hook");
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function reasonOf(cause: unknown, signal: AbortSignal): string {
  if (cause instanceof HookRefusal) return escapeHidden(cause.message);
  const why = signal.aborted ? "it took too long" : GatewayError.from(cause).message;
  return `the gateway could not be asked, so the tool does not run: ${why}`;
}

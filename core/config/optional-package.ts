import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type ErrorCode, GatewayError } from "../action/error.ts";

/** The optional packages that each use needs: an installation may have been made without them. */
export const optionalPackages = {
  cedar: ["@cedar-policy/cedar-wasm"],
  keyless: ["sigstore"],
  replicas: ["pg"],
  reports: ["pg"],
  telemetry: [
    "@opentelemetry/api",
    "@opentelemetry/otlp-transformer",
    "@opentelemetry/resources",
    "@opentelemetry/sdk-metrics",
    "@opentelemetry/sdk-trace",
  ],
  trustUpdate: ["@sigstore/tuf", "tuf-js"],
} as const;

/** Throws `code` with the command that installs what is missing, where one of the packages of a use is not installed. */
export function requireOptional(use: keyof typeof optionalPackages, what: string, code: ErrorCode): void {
  const missing = optionalPackages[use].filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  const packages = missing.map((name) => `\`${name}\``).join(", ");
  const named = missing.map((name) => `${name}@${versions()[name]}`).join(" ");
  throw new GatewayError(
    code,
    `${what} needs the optional packages ${packages}, got an installation without them; \`npm install ${named}\` installs them`,
  );
}

function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch (cause) {
    // A package that only exports modules is there as well.
    return (cause as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND";
  }
}

/** The versions that the gateway is tested with. */
function versions(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")).optionalDependencies;
}

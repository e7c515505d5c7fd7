import { GatewayError } from "../action/error.ts";

/** The settings of the gateway, admin and metrics ports. */
export const portSetting = "`listen` in the configuration, `--port` without one";

/** Describes why a port cannot be listened at. `setting`: says where another one is chosen. */
export function portFault(host: string, port: number, setting: string, cause: NodeJS.ErrnoException): GatewayError {
  const isTaken = cause.code === "EADDRINUSE";
  const why = isTaken
    ? `another process listens there; stop it, or choose another port: ${setting}`
    : (cause.code ?? "unknown cause");
  return new GatewayError("PORT_UNAVAILABLE", `${host}:${port}: ${why}`, { cause });
}

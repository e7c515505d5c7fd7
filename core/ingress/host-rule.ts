import { GatewayError } from "../kernel/error.ts";

const loopback: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
const hostShape = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/i;
const originShape = /^https?:\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/i;

/**
 * Which `Host` and `Origin` values may reach this port: the wall against DNS rebinding and foreign web pages.
 * Empty lists mean the loopback names only, never everyone.
 */
export class HostRule {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;

  constructor(allowedHosts: readonly string[], allowedOrigins: readonly string[]) {
    this.#hosts = new Set([...loopback, ...allowedHosts.map((host) => host.toLowerCase())]);
    this.#origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  }

  /** Throws HOST_FORBIDDEN or ORIGIN_FORBIDDEN. A request without `Origin` does not come from a web page. */
  check(host: string | undefined, origin: string | undefined): void {
    if (!this.#allowsHost(host?.toLowerCase() ?? "")) {
      throw new GatewayError("HOST_FORBIDDEN", "expected a host listed in `listen.allowed_hosts`");
    }
    if (origin !== undefined && !this.#allowsOrigin(origin.toLowerCase())) {
      throw new GatewayError("ORIGIN_FORBIDDEN", "expected an origin listed in `listen.allowed_origins`");
    }
  }

  /** An entry with a port stands for that port only, one without for every port. */
  #allowsHost(host: string): boolean {
    const name = hostShape.exec(host)?.[1];
    return name !== undefined && (this.#hosts.has(name) || this.#hosts.has(host));
  }

  #allowsOrigin(origin: string): boolean {
    if (this.#origins.has(origin)) return true;
    const name = originShape.exec(origin)?.[1];
    return name !== undefined && loopback.includes(name);
  }
}

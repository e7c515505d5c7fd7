import { lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { zoneOfIp } from "../fact/ip-zone.ts";
import { type Destination, destinationOf, type HostSource, PrivateHosts } from "./destination.ts";
import { isOwnAddress } from "./own-address.ts";

interface EgressOptions {
  /** `egress.private_hosts`: hosts that may have addresses that are not public. */
  readonly privateHosts: readonly string[];
  /** The name of the setting that `privateHosts` came from, for messages; `egress.private_hosts` by default. */
  readonly setting?: string;
  /** Called with each connection that is refused. */
  readonly onRefused?: (refusal: EgressError) => void;
}

/** A connection that was not made. Its message is for operators: it names the host, the address and the setting. */
export class EgressError extends Error {
  /** Beside the codes of the system, where callers show no message. */
  readonly code = "EGRESS_REFUSED";

  constructor(message: string) {
    super(message);
    this.name = "EgressError";
  }
}

/**
 * The way out of the gateway: judges each address at which a connection is about to be opened, and refuses those where
 * nothing of the operator's can be. Every client of the gateway connects through it.
 *
 * INVARIANT: a name is looked up once for each connection, and the address that was judged is the one that is connected to.
 */
export class EgressGuard {
  readonly #privateHosts: PrivateHosts;
  readonly #setting: string;
  readonly #onRefused: (refusal: EgressError) => void;
  readonly #ownPorts = new Set<number>();

  constructor({ privateHosts, setting = "egress.private_hosts", onRefused = () => undefined }: EgressOptions) {
    this.#privateHosts = new PrivateHosts(privateHosts);
    this.#setting = setting;
    this.#onRefused = onRefused;
  }

  /** Refuses connections to this port on any address of this machine from now on: the gateway listens there. */
  claimPort(port: number): void {
    this.#ownPorts.add(port);
  }

  /** Returns the `connect` of an undici client for one origin. It fails with EgressError where no address is permitted. */
  connector(url: URL, timeoutMs: number, source: HostSource = "configuration"): buildConnector.connector {
    const destination = destinationOf(url, source, this.#privateHosts);
    const connect = buildConnector({ timeout: timeoutMs, lookup: this.#lookupOf(destination) });
    // Node connects to an address without a look-up.
    if (isIP(destination.host) === 0) return connect;
    return (options, callback) => {
      const refusal = this.#refusalOf(destination, [destination.host]);
      if (refusal === undefined) connect(options, callback);
      else process.nextTick(callback, refusal, null);
    };
  }

  #lookupOf(destination: Destination): LookupFunction {
    return (hostname, options, callback) => {
      lookup(hostname, { ...options, all: true }, (error, found) => {
        if (error !== null) return callback(error, []);
        const permitted = found.filter(({ address }) => this.#faultOf(destination, address) === undefined);
        const [first] = permitted;
        if (first === undefined) {
          const addresses = found.map(({ address }) => address);
          return callback(this.#refusalOf(destination, addresses) ?? new Error("no address was found"), []);
        }
        return options.all === true ? callback(null, permitted) : callback(null, first.address, first.family);
      });
    };
  }

  /** Returns and reports the refusal of a destination by the first of its addresses that is at fault. */
  #refusalOf(destination: Destination, addresses: readonly string[]): EgressError | undefined {
    const fault = addresses.map((address) => this.#faultOf(destination, address)).find((each) => each !== undefined);
    if (fault === undefined) return undefined;
    const refusal = new EgressError(`refused to connect to \`${destination.host}\`: ${fault}`);
    this.#onRefused(refusal);
    return refusal;
  }

  #faultOf({ port, zones }: Destination, address: string): string | undefined {
    const { zone } = zoneOfIp(address);
    if (zone === "metadata") return `${address} is a metadata service, which no setting permits`;
    if (this.#ownPorts.has(port) && isOwnAddress(address)) return `${address} port ${port} is the gateway itself`;
    if (zones.has(zone)) return undefined;
    return `its address ${address} is ${zone}; if that is meant, list the host in \`${this.#setting}\``;
  }
}

import { runProgram } from "./program.ts";

/** What a replica does on each of the networks it is connected to: one link apiece, so that each can fail alone. */
export const networks = ["database", "peers", "clients"] as const;
export type Network = (typeof networks)[number];

/**
 * A network namespace for each replica, as machines of their own have. Their three networks are bridges in a further namespace.
 * This process is at an address of the networks `database` and `clients`. Needs root.
 */
export class NetworkNamespaces {
  readonly #name = `gateway-${process.pid}`;
  readonly #count: number;
  /** The first three numbers of every address. */
  readonly #block: string;

  private constructor(count: number, block: string) {
    this.#count = count;
    this.#block = block;
  }

  /** Makes the namespaces and connects them. Rejects, with nothing left behind, where this machine does not allow it. */
  static async create(count: number): Promise<NetworkNamespaces> {
    let made: NetworkNamespaces | undefined;
    try {
      made = new NetworkNamespaces(count, await freeBlock());
      await made.#create();
      return made;
    } catch (cause) {
      await made?.remove();
      const { message } = cause as Error;
      throw new Error(`expected to make network namespaces, which takes root and the package iproute2: ${message}`);
    }
  }

  /** This process's own address on a network. */
  hostOf(network: "database" | "clients"): string {
    return this.#address(network, 0);
  }

  /** A replica's address on a network. */
  addressOf(index: number, network: Network): string {
    return this.#address(network, index + 1);
  }

  /** The command that runs its arguments as a replica's machine would. */
  launcherOf(index: number): readonly string[] {
    return ["ip", "netns", "exec", this.#machine(index)];
  }

  /** Loses everything between a replica and some networks, in both directions; the links stay up, and neither side is told. */
  cut(index: number, from: readonly Network[]): Promise<void> {
    return batch(
      this.#name,
      from.map((network) => `link set ${network}-${index} nomaster`),
    );
  }

  heal(index: number, from: readonly Network[]): Promise<void> {
    return batch(
      this.#name,
      from.map((network) => `link set ${network}-${index} master ${network}`),
    );
  }

  /** How many connections to another replica have been closed by one, and have something left that the other has not received. */
  async unsent(index: number, to: number): Promise<number> {
    const [command = "", ...args] = [...this.launcherOf(index), "ss", "--no-header", "--tcp", "--numeric"];
    const { code, stdout, stderr } = await runProgram(command, [
      ...args,
      ...["state", "fin-wait-1", "dst", this.addressOf(to, "peers")],
    ]);
    if (code !== 0) throw new Error(`ss: ${stderr}`);
    return stdout.split("\n").length - 1;
  }

  /** Removes every namespace, and all links with them. What still runs in one keeps it alive until it ends. */
  async remove(): Promise<void> {
    const names = [this.#name, ...this.#machines()];
    await Promise.all(names.map((name) => runProgram("ip", ["netns", "delete", name])));
  }

  async #create(): Promise<void> {
    const hub = this.#name;
    for (const name of [hub, ...this.#machines()]) await ip(["netns", "add", name]);
    await batch(
      hub,
      networks.flatMap((network) => [
        `link add ${network} type bridge`,
        `link set ${network} up`,
        ...this.#machines().flatMap((machine, index) => connect(`${network}-${index}`, network, machine)),
      ]),
    );
    for (const [index, machine] of this.#machines().entries()) {
      const addresses = networks.flatMap((network) => appear(network, this.addressOf(index, network)));
      await batch(machine, ["link set lo up", ...addresses]);
    }
    for (const network of ["database", "clients"] as const) {
      // A name of a link has at most 15 characters.
      const link = `gw${process.pid}${network.slice(0, 2)}`;
      await ip(["link", "add", link, "type", "veth", "peer", "name", `${network}-test`, "netns", hub]);
      await batch(hub, [`link set ${network}-test master ${network} up`]);
      await batch(null, appear(link, this.hostOf(network)));
    }
  }

  #machine(index: number): string {
    return `${this.#name}-${index}`;
  }

  #machines(): readonly string[] {
    return Array.from({ length: this.#count }, (_, index) => this.#machine(index));
  }

  #address(network: Network, host: number): string {
    return `${this.#block}.${networks.indexOf(network) * 64 + 1 + host}`;
  }
}

/** Connects a machine to a bridge, by a link that has the bridge's name there. */
function connect(port: string, bridge: string, machine: string): readonly string[] {
  return [`link add ${port} type veth peer name ${bridge} netns ${machine}`, `link set ${port} master ${bridge} up`];
}

function appear(link: string, address: string): readonly string[] {
  return [`address add ${address}/26 dev ${link}`, `link set ${link} up`];
}

/** The first three numbers of addresses for tests of networks (RFC 2544) that this machine has no route to yet. */
async function freeBlock(): Promise<string> {
  for (let at = process.pid; ; at++) {
    const block = `198.${18 + (Math.floor(at / 256) % 2)}.${at % 256}`;
    if ((await ip(["-4", "route", "show", "root", `${block}.0/24`])) === "") return block;
  }
}

/** Runs commands of `ip`, one a line, in a namespace; null: in the one of this process. */
async function batch(namespace: string | null, lines: readonly string[]): Promise<void> {
  const place = namespace === null ? [] : ["-n", namespace];
  await ip([...place, "-batch", "-"], lines.join("\n"));
}

async function ip(args: readonly string[], input = ""): Promise<string> {
  const { code, stdout, stderr } = await runProgram("ip", args, input);
  if (code !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
  return stdout;
}

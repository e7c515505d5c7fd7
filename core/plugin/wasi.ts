import { PluginBreach } from "./breach.ts";

/** The module name of WASI's functions, preview 1. */
export const wasiModule = "wasi_snapshot_preview1";

interface WasiSignature {
  readonly params: readonly ("i32" | "i64")[];
  readonly results: readonly ["i32"] | readonly [];
}

/** `i` is an i32, `l` an i64. */
const parameters = {
  args_get: "ii",
  args_sizes_get: "ii",
  environ_get: "ii",
  environ_sizes_get: "ii",
  clock_res_get: "ii",
  clock_time_get: "ili",
  fd_advise: "illi",
  fd_allocate: "ill",
  fd_close: "i",
  fd_datasync: "i",
  fd_fdstat_get: "ii",
  fd_fdstat_set_flags: "ii",
  fd_fdstat_set_rights: "ill",
  fd_filestat_get: "ii",
  fd_filestat_set_size: "il",
  fd_filestat_set_times: "illi",
  fd_pread: "iiili",
  fd_prestat_dir_name: "iii",
  fd_prestat_get: "ii",
  fd_pwrite: "iiili",
  fd_read: "iiii",
  fd_readdir: "iiili",
  fd_renumber: "ii",
  fd_seek: "ilii",
  fd_sync: "i",
  fd_tell: "ii",
  fd_write: "iiii",
  path_create_directory: "iii",
  path_filestat_get: "iiiii",
  path_filestat_set_times: "iiiilli",
  path_link: "iiiiiii",
  path_open: "iiiiillii",
  path_readlink: "iiiiii",
  path_remove_directory: "iii",
  path_rename: "iiiiii",
  path_symlink: "iiiii",
  path_unlink_file: "iii",
  poll_oneoff: "iiii",
  proc_exit: "i",
  proc_raise: "i",
  random_get: "ii",
  sched_yield: "",
  sock_accept: "iii",
  sock_recv: "iiiiii",
  sock_send: "iiiii",
  sock_shutdown: "ii",
} as const;
type WasiName = keyof typeof parameters;

/** The functions of WASI that a plugin may import, with their types. */
export const wasiSignatures: Readonly<Record<string, WasiSignature>> = Object.fromEntries(
  Object.entries(parameters).map(([name, params]) => [
    name,
    {
      params: Array.from(params, (letter) => (letter === "i" ? ("i32" as const) : ("i64" as const))),
      results: name === "proc_exit" ? ([] as const) : (["i32"] as const),
    },
  ]),
);

/** The parts of a call that WASI's functions use. */
interface WasiCall {
  /** The guest's memory; undefined where it has none. */
  readonly memory: () => WebAssembly.Memory | undefined;
  /** Marks a range of that memory as written. */
  readonly mark: (at: number, length: number) => void;
  /** Deducts fuel; throws when none is left. */
  readonly charge: (fuel: number) => void;
  /** Counts bytes of log; throws when they are too many. */
  readonly log: (bytes: number) => void;
  /** Ends the call with a breach. */
  readonly fail: (breach: PluginBreach) => never;
}

const errno = { success: 0, badDescriptor: 8, noSystem: 52, noSeek: 70 } as const;
const streams = 3;
const characterDevice = 2;
const mayWrite = 0x40n;
const maxVectors = 1_024;

/**
 * WASI without a world: no files, no environment, no arguments, a clock that stands at 0, zeros for random bytes. What
 * is written to a stream is counted and dropped. `proc_exit` and `proc_raise` are breaches.
 */
export function closedWasi(
  call: WasiCall,
): Readonly<Record<string, (...values: readonly never[]) => number | undefined>> {
  const bad = (): number => errno.badDescriptor;
  const unknown = (): number => errno.noSystem;
  const isStream = (descriptor: number): boolean => descriptor >= 0 && descriptor < streams;
  const ofStream = (descriptor: number): number => (isStream(descriptor) ? errno.success : errno.badDescriptor);
  const view = (at: number, length: number): DataView => {
    const buffer = call.memory()?.buffer ?? new ArrayBuffer(0);
    const from = at >>> 0;
    if (from + length > buffer.byteLength) {
      call.fail(new PluginBreach("host_call", "expected an address of WASI inside the memory"));
    }
    call.mark(from, length);
    return new DataView(buffer, from, length);
  };
  const put32 = (at: number, value: number): void => view(at, 4).setUint32(0, value, true);
  const put64 = (at: number, value: bigint): void => view(at, 8).setBigUint64(0, value, true);
  const noStrings = (count: number, bytes: number): number => {
    put32(count, 0);
    put32(bytes, 0);
    return errno.success;
  };
  const end = (): never => call.fail(new PluginBreach("host_call", "the plugin ended its process"));

  const own: Partial<Record<WasiName, (...values: never[]) => number | undefined>> = {
    args_get: () => errno.success,
    args_sizes_get: noStrings,
    environ_get: () => errno.success,
    environ_sizes_get: noStrings,
    clock_res_get: (_: number, at: number) => {
      put64(at, 1n);
      return errno.success;
    },
    clock_time_get: (_: number, __: bigint, at: number) => {
      put64(at, 0n);
      return errno.success;
    },
    random_get: (at: number, length: number) => {
      const bytes = length >>> 0;
      call.charge(Math.ceil(bytes / 8));
      const { buffer, byteOffset } = view(at, bytes);
      new Uint8Array(buffer, byteOffset, bytes).fill(0);
      return errno.success;
    },
    fd_close: ofStream,
    fd_fdstat_get: (descriptor: number, at: number) => {
      if (!isStream(descriptor)) return errno.badDescriptor;
      const stat = view(at, 24);
      for (const offset of [0, 8, 16]) stat.setBigUint64(offset, 0n);
      stat.setUint8(0, characterDevice);
      stat.setBigUint64(8, mayWrite, true);
      return errno.success;
    },
    fd_fdstat_set_flags: ofStream,
    fd_read: (descriptor: number, _: number, __: number, at: number) => {
      if (descriptor !== 0) return errno.badDescriptor;
      put32(at, 0);
      return errno.success;
    },
    fd_seek: (descriptor: number) => (isStream(descriptor) ? errno.noSeek : errno.badDescriptor),
    fd_tell: (descriptor: number) => (isStream(descriptor) ? errno.noSeek : errno.badDescriptor),
    fd_write: (descriptor: number, vectors: number, count: number, at: number) => {
      if (descriptor !== 1 && descriptor !== 2) return errno.badDescriptor;
      const vectorCount = count >>> 0;
      if (vectorCount > maxVectors) {
        call.fail(new PluginBreach("host_call", `expected at most ${maxVectors} vectors in one write`));
      }
      call.charge(8 * vectorCount);
      const list = view(vectors, 8 * vectorCount);
      let written = 0;
      for (let index = 0; index < vectorCount; index++) written += list.getUint32(8 * index + 4, true);
      call.log(written);
      put32(at, written);
      return errno.success;
    },
    poll_oneoff: unknown,
    proc_exit: end,
    proc_raise: end,
    sched_yield: () => errno.success,
  };
  return Object.fromEntries(Object.keys(parameters).map((name) => [name, own[name as WasiName] ?? bad]));
}

import { PluginFault } from "./fault.ts";

/** The module name of WASI's functions, preview 1. */
export const wasiModule = "wasi_snapshot_preview1";

/** The parts of a call that WASI's functions use. */
interface WasiCall {
  /** The plugin's own memory; undefined where it exports none. */
  readonly memory: () => WebAssembly.Memory | undefined;
  /** Receives what is written to a stream: its length, and those of its bytes that lie in the memory. */
  readonly write: (length: number, bytes: Uint8Array) => void;
}

const errno = { success: 0, badDescriptor: 8, noSystem: 52, noSeek: 70 } as const;
const streams = 3;
const characterDevice = 2;
const mayWrite = 0x40n;
const maxVectors = 1_024;

/** Functions of files, directories and sockets: there are none to use them on. */
const closed = [
  ...["fd_advise", "fd_allocate", "fd_datasync", "fd_fdstat_set_rights", "fd_filestat_get", "fd_filestat_set_size"],
  ...["fd_filestat_set_times", "fd_pread", "fd_prestat_dir_name", "fd_prestat_get", "fd_pwrite", "fd_readdir"],
  ...["fd_renumber", "fd_sync", "path_create_directory", "path_filestat_get", "path_filestat_set_times", "path_link"],
  ...["path_open", "path_readlink", "path_remove_directory", "path_rename", "path_symlink", "path_unlink_file"],
  ...["sock_accept", "sock_recv", "sock_send", "sock_shutdown"],
] as const;

/**
 * WASI as the gateway has it: no files, no environment, no arguments, a clock that stands at 0, zeros for random bytes.
 * `proc_exit` and `proc_raise` throw PluginFault.
 */
export function closedWasi({ memory, write }: WasiCall): Readonly<Record<string, (...values: never[]) => unknown>> {
  const isStream = (descriptor: number): boolean => descriptor >= 0 && descriptor < streams;
  const ofStream = (descriptor: number): number => (isStream(descriptor) ? errno.success : errno.badDescriptor);
  const seek = (descriptor: number): number => (isStream(descriptor) ? errno.noSeek : errno.badDescriptor);
  const view = (at: number, length: number): DataView => {
    const buffer = memory()?.buffer ?? new ArrayBuffer(0);
    const from = at >>> 0;
    if (from + length > buffer.byteLength) {
      throw new PluginFault("host_call", "expected an address of WASI inside the memory");
    }
    return new DataView(buffer, from, length);
  };
  const bytesAt = (at: number, length: number): Uint8Array => {
    const { buffer, byteOffset, byteLength } = view(at, length);
    return new Uint8Array(buffer, byteOffset, byteLength);
  };
  const put32 = (at: number, value: number): number => {
    view(at, 4).setUint32(0, value, true);
    return errno.success;
  };
  const put64 = (at: number, value: bigint): number => {
    view(at, 8).setBigUint64(0, value, true);
    return errno.success;
  };
  const noStrings = (count: number, bytes: number): number => put32(count, 0) || put32(bytes, 0);
  const end = (): never => {
    throw new PluginFault("host_call", "the plugin ended its process");
  };
  return {
    ...Object.fromEntries(closed.map((name) => [name, () => errno.badDescriptor])),
    args_get: () => errno.success,
    args_sizes_get: noStrings,
    environ_get: () => errno.success,
    environ_sizes_get: noStrings,
    clock_res_get: (_: number, at: number) => put64(at, 1n),
    clock_time_get: (_: number, __: bigint, at: number) => put64(at, 0n),
    random_get: (at: number, length: number) => {
      bytesAt(at, length >>> 0).fill(0);
      return errno.success;
    },
    fd_close: ofStream,
    fd_fdstat_get: (descriptor: number, at: number) => {
      if (!isStream(descriptor)) return errno.badDescriptor;
      bytesAt(at, 24).fill(0);
      view(at, 1).setUint8(0, characterDevice);
      return put64(at + 8, mayWrite);
    },
    fd_fdstat_set_flags: ofStream,
    fd_read: (descriptor: number, _: number, __: number, at: number) =>
      descriptor === 0 ? put32(at, 0) : errno.badDescriptor,
    fd_seek: seek,
    fd_tell: seek,
    fd_write: (descriptor: number, vectors: number, count: number, at: number) => {
      if (descriptor !== 1 && descriptor !== 2) return errno.badDescriptor;
      if (count >>> 0 > maxVectors) {
        throw new PluginFault("host_call", `expected at most ${maxVectors} vectors in one write`);
      }
      const list = view(vectors, 8 * (count >>> 0));
      let written = 0;
      for (let index = 0; index < count; index++) {
        const [from, length] = [list.getUint32(8 * index, true), list.getUint32(8 * index + 4, true)];
        write(length, new Uint8Array(list.buffer).subarray(from, from + length));
        written += length;
      }
      return put32(at, written);
    },
    poll_oneoff: () => errno.noSystem,
    proc_exit: end,
    proc_raise: end,
    sched_yield: () => errno.success,
  };
}

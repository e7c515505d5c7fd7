import { type FileHandle, open } from "node:fs/promises";

/** A fault in a file of the store. Its message says what was expected there, and what was found. */
export class DamageError extends Error {
  /** Bytes before the fault. */
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

const windowBytes = 1_048_576;

/** A file that is read through a buffer of fixed size, whatever it holds. */
export class FileWindow {
  readonly #file: FileHandle;
  readonly #buffer: Buffer;
  #start = 0;
  #end = 0;
  /** Bytes of the file when it was opened; what is appended later is not read. */
  readonly size: number;

  private constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.size = size;
    this.#buffer = Buffer.allocUnsafe(Math.min(windowBytes, size));
  }

  /** Lets `use` read the file at `path`, and closes it. Rejects with the system's own error where it cannot be opened. */
  static async read<T>(path: string, use: (file: FileWindow) => Promise<T>): Promise<T> {
    const file = await open(path, "r");
    try {
      return await use(new FileWindow(file, (await file.stat()).size));
    } finally {
      await file.close();
    }
  }

  /** Returns `length` bytes, at most a mebibyte, valid until the next call. Throws DamageError where the file is shorter. */
  async bytes(offset: number, length: number): Promise<Buffer> {
    if (offset < this.#start || offset + length > this.#end) await this.#move(offset, length);
    return this.#buffer.subarray(offset - this.#start, offset - this.#start + length);
  }

  /** Returns a copy of `length` bytes, of which the caller bounds the number. */
  async copy(offset: number, length: number): Promise<Buffer> {
    const copied = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; at += windowBytes) {
      (await this.bytes(offset + at, Math.min(windowBytes, length - at))).copy(copied, at);
    }
    return copied;
  }

  async #move(offset: number, length: number): Promise<void> {
    if (offset + length > this.size) throw new DamageError(this.size, `the file ends before byte ${offset + length}`);
    this.#end = 0;
    const wanted = Math.min(windowBytes, this.size - offset);
    const { bytesRead } = await this.#file.read(this.#buffer, 0, wanted, offset);
    if (bytesRead < length) throw new DamageError(offset + bytesRead, `the file ends before byte ${offset + length}`);
    this.#start = offset;
    this.#end = offset + bytesRead;
  }
}

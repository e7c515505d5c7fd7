/** The part of the engine's interface used here; the compiler's own declaration needs the whole DOM. */
declare namespace WebAssembly {
  type Exported = Global | Memory | ((...values: readonly unknown[]) => unknown);

  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    readonly exports: Readonly<Record<string, Exported | undefined>>;
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
  }
  class Memory {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  class Global {
    value: number | bigint;
  }
  class RuntimeError extends Error {}
  class CompileError extends Error {}
  function validate(bytes: Uint8Array): boolean;
}

// The functions of the Extism ABI that a plugin may import; the gateway refuses a module that imports any other.

@external("extism:host/env", "input_length")
export declare function inputLength(): u64;
@external("extism:host/env", "input_load_u8")
export declare function inputLoadU8(offset: u64): u8;
@external("extism:host/env", "input_load_u64")
export declare function inputLoadU64(offset: u64): u64;
@external("extism:host/env", "alloc")
export declare function alloc(length: u64): u64;
@external("extism:host/env", "store_u8")
export declare function storeU8(offset: u64, value: u8): void;
@external("extism:host/env", "store_u64")
export declare function storeU64(offset: u64, value: u64): void;
@external("extism:host/env", "output_set")
export declare function outputSet(offset: u64, length: u64): void;

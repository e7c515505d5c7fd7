import { parseRequirements, type Requirement } from "./support/requirement-table.ts";

/**
 * The security requirements: input → what must happen. Each is shown through the listening socket or the real CLI.
 * The table reads as the one in `requirements.ts`; `-` stands for no issue yet, and tests name rows as `[S13]`.
 */
export const securityRequirements: readonly Requirement[] = parseRequirements(`
## Identity and access
S1  | 2      | met  | Bad/huge/quoted/NUL/non-Latin key, or exception thrown inside auth → 401/403, no default identity, no dispatch, key not logged
S2  | 2      | met  | Two Authorization, two X-API-Key, or both kinds with different keys → 400/401
S3  | 2      | met  | Two X-Gateway-Session-ID, control/non-ASCII, > 128 chars → 400, never a new scope "a, b"
S4  | 8      | met  | Tenant A admin uses tenant B's ids on every admin path, GraphQL field, WS, CLI, backup → same answer as unknown id; attempt in evidence
S5  | 2, 8   | met  | Each role x each route x each transport, generated from the route table → matrix; new route without row fails the build
S6  | 2      | met  | Body naming command/args/env/url of a server or provider → never spawned or dialled
S7  | 2      | met  | Empty or missing allowlist, origins, policy directory, keys → deny or refuse to start
S8  | 2      | met  | Path variants (//, %2f, .., case, trailing slash, absolute-form, #) on every route → same decision as canonical, or 404/400
S9  | 2, 8   | met  | Host not allowed, duplicate Host, evil:x@good; Origin not allowed, on 3 ports, SSE, WS → 403/421/400
S10 | 2      | met  | POST with text/plain, urlencoded, multipart or no Content-Type → 415, no dispatch
S11 | 2      | met  | Default start → loopback only; public bind without keys refuses
S12 | 2, 6   | met  | Client key, cookies, X-Forwarded-* of the client → never seen by any upstream; provider key never in a reply

## Parsing and transport
S13 | 2      | met  | Duplicate JSON keys at any depth → parse error
S14 | 2      | met  | Method, PARAMS, paramſ, extra top-level members → refused or dropped; upstream gets our re-serialisation only
S15 | 2      | met  | |int| > 2^53, 1e400, -0, 1.0 → refused or lossless; never two actions, one fingerprint
S16 | 2      | met  | Invalid UTF-8, lone surrogate, BOM, NUL → 400
S17 | 2, 6   | met  | Nesting over limit (e.g. 64) in request, upstream reply, provider reply, policy, GraphQL → clean error in < 10 ms, no 500
S18 | 2      | met  | __proto__, constructor, prototype keys anywhere → plain data, Object.prototype unchanged
S19 | 2, 6   | met  | Oversize, gzip bomb 50 MB → 48 kB, unknown Content-Encoding, endless chunks → 413/415, RSS bounded
S20 | 2      | met  | 1 byte/s headers or body, 1,000 sockets → closed in ≤ 30 s, /health stays < 100 ms
S21 | 2      | met  | CL+TE, TE gzip, chunked, obs-fold, bare LF, space before colon, a smuggled second request → 400 and close, one evidence row at most
S22 | 2      | met  | 2,001 headers or one of 17 kB → 431
S23 | 2      | met  | JSON-RPC batch, response object, id null/object, tools/call as notification → refused; equal ids by two tenants at once → own answers
S24 | 2      | met  | Mcp-Method/Mcp-Name/Mcp-Param or version header unlike the body → 400 with −32020; policy reads the body only
S25 | 2      | met  | Unknown method (resources/read, sampling, vendor) → governed or refused, never piped through
S26 | 4      | met  | Foreign key or no key on /mcp/session/{id}; id after disconnect; guessed id → 401/403/404; ids ≥ 128 bits
S27 | 5      | met  | Adversarial 64 kB text against every built-in and pack regex → < 50 ms; pack regex with lookbehind/backreference refused
S28 | 2      | met  | Tool schema with remote $ref, cycles, 10^5 subschemas → never fetched, bounded, tool hidden

## Policy and plugins
S29 | 2, 5   | met  | Throw, timeout, trap, NaN, undefined, unknown verdict at every evaluation step → block, evidence says policy_error
S30 | 2      | met  | No rule matches → documented default, never allow by accident
S31 | 2      | met  | Pack with duplicate key, unknown key (acton, <<), unknown tag, second document, alias bomb, depth bomb → load refused, old pack stays
S32 | 2      | met  | Same rules in any order, allow + block both match → block
S33 | 5      | met  | Reload under 1,000 rps, broken file half way → every decision names exactly one pack hash; last good kept
S34 | 5      | met  | Strict mode: unsigned, altered, other-file signature, older version → refused
S35 | 5      | met  | Plugin: endless loop, memory growth, 100 MB output, host-call flood, non-JSON → stopped in budget, block, other requests p99 unhurt
S36 | 2      | met  | Tool names: case, spaces, NFC/NFD, homoglyph, 129 chars, same name on two servers → exact match or default; collision prefixed or refused
S37 | 18     | met  | Path targets with .., %2e, %252e, backslash, //, NUL (every known encoding) → never match an allow glob for the root
S38 | 18     | met  | URL targets (every known SSRF form), redirects, DNS that answers differently the second time → blocked; connects to the checked address; each hop judged
S39 | 18     | met  | Known shell bypasses → never allow; near misses → never block; unparsable → not allow
S40 | 18     | met  | > N subcommands or > 8 kB command → not allow
S41 | 18     | met  | Known SQL bypasses (stacked, CTE write, /*! */, COPY PROGRAM, dialect quoting) → worst class wins; unparsable → not allow
S42 | 18     | met  | Known Git abuses (ext::, --upload-pack, -c core.*, --output, +refspec) → never allow
S43 | 7      | met  | Capability ticket reused nonce, expired, other principal, wrong clock → refused

## Approvals
S44 | 4      | met  | 200 concurrent retries of one approved action over many sockets → upstream sees exactly 1
S45 | 4      | met  | kill -9 at random x 1,000 (claim, fsync, send, reply, evidence) → receipts per approval ≤ 1; after restart not approved again
S46 | 3, 4   | met  | Cut tail / flipped bit / removed file / older copy of the state → start refuses or expires all; consumed never becomes approved
S47 | 4      | met  | Upstream refuses, resets, times out, dies mid-stream → consumed; new approval needed
S48 | 4      | met  | Change each of the 9 fingerprint inputs alone, any nested value, array order, letter case, NFC/NFD → new approval; key order and whitespace → same
S49 | 4      | met  | ("a","bc") vs ("ab","c"), null vs missing vs "" → different fingerprints
S50 | 4      | met  | New JSON-RPC id, progressToken, traceparent → same; inputResponses, any _meta that reaches the tool → new
S51 | 4, 8   | met  | Long, bidi, zero-width, ANSI arguments in list/GET/CLI/dashboard → whole and escaped; if cut, approve refused
S52 | 4      | met  | Approve+deny race, double approve, approve after expiry/deny/consume, two reviewers → one terminal state, rest 409
S53 | 4      | met  | Requester approves own action; reviewer field; approve via tool call, chat text, header → no effect
S54 | 4      | met  | Clock back 1 h / forward → expired stays expired
S55 | 4      | met  | Tool description/schema hash changed since request → approval void
S56 | 4      | met  | Key rotated, label changed, SSE reconnected, HTTP<->SSE, restart → per spec table, exactly
S57 | 4, 7   | met  | Review flood → bounded queue, kill switch, list still pages

## Tools, output, sessions
S58 | 18     | met  | Poisoned tool definitions → hidden or flagged; real ones → ≤ 1 % flagged; unlisted tool call → block
S59 | 5, 6   | met  | Secret/PII in result text, structuredContent, error text, resource link, base64, JSON-escaped → redacted/blocked before any byte of it leaves
S60 | 6      | met  | Secret split at every byte offset across stream chunks → same; abort cancels upstream and sends a well-formed end
S61 | 7      | met  | Poisoned result then write/egress in the session → not allow; hijacked sessions ≥ 95 % stopped at an injected action, benign ones 0 blocked
S62 | 6      | met  | Model returns tool calls while passthrough is off → not forwarded, not run
S63 | 7      | met  | Action count, risk, kill switch under 100 concurrent actions → no overshoot; shadow mode never blocks and never hides

## Evidence, data, operations
S64 | 3      | met  | Flip, insert, drop, reorder, cut tail, swap whole chain, roll back, two tenants in one chain → verify fails and names the first bad record; cut tail found through signed head
S65 | 2, 3   | met  | ENOSPC, EIO, lock lost before dispatch → action not run, 503
S66 | 3, 8   | met  | Canary secrets in every input → absent from evidence, logs, metrics, backups, traces, crash output
S67 | 8      | met  | CRLF, ANSI, </script>, formula text in names → inert in logs, SSE frames, dashboard, CSV; CSP default-src 'self', frame-ancestors 'none', nosniff
S68 | 2, 7, 8| met  | 100,000 distinct tools/sessions/models → metric series and maps bounded
S69 | 2, 3   | met  | Second process on the same state → refuses (LEVEL_LOCKED); read-only disk → refuses
S70 | 8      | met  | Backup dir traversal/symlink; restore of older backup → refused; no approval revived
S71 | 8      | met  | GraphQL depth 50, 1,000 aliases, batch, introspection → refused
S72 | 8      | met  | /v1/ws without key, wrong Origin, slow reader, 1 MB frame, 10,000 sockets → refused/closed, memory bounded
S73 | 6, 22  | part | 10 x load → 429/503, zero changed decisions; admitted p99 in budget (held by counts: how many later calls overtake one, and the CPU of each; milliseconds are printed by \`bench:overload\` alone)
S74 | 6, 22  | part | 1 M decisions → flat RSS and flat latency (a test holds heap and CPU of 4,000; \`bench:endurance\` prints those of a million)
S75 | 2      | met  | Install with scripts off, from lockfile, on Node 20 → starts; no dependency asks for a newer engine

## Fairness
S76 | 16, 22 | part | A body of more JSON nodes than the bound; wide, deep, repeated: refused at parse, under 5 ms; no request holds the event loop for more than 20 ms (all is read, judged, sealed and sent in turns, which tests count; \`bench:turns\` prints 3 to 12 for calls and model requests of 4 MB and for answers of 14, once 22; a collection of garbage takes 5 to 14 besides)
S77 | 16, 22 | met  | One key at its worst (wide bodies, sessions, connections, sockets, watchers, review floods, stored bytes) → another tenant's p50 within 3× of quiet, operators and kills within 100 ms, /health within 50 ms; refusals name the limit (tests hold counts, order and CPU; \`bench:starve\` prints the milliseconds)

## What reaches upstreams
S78 | 17, 22 | met  | Extra members anywhere (handshake capabilities, \`_meta\`, \`tracestate\`, \`clientInfo\`, model request members) → judged or never sent; the upstream's log holds nothing else

## What was found by attacking the first edition
S79 | 18     | met  | A new session label of a stopped, tainted or flooding principal → no fresh start; a secret in pieces is found or bounded
S80 | 22     | met  | The same text in another spelling beside the judged one (\`logprobs\`, bytes, ids, structuredContent beside content, split items) → judged joined, or dropped
S81 | 22     | met  | A bundle without its tail, its kill, or the record of a policy in force, re-sealed with the right key → \`incomplete\`, both verifiers
S82 | 18     | met  | A tool's definition changed without notice between approval and use → not run; poisoned, shadowing or look-alike definition → withheld, reviewed with a diff
S83 | 18     | met  | Unparsable, dynamic or disputed argument facts → \`effect: unknown\`, never allowed by a shipped rule

## Access tokens
S84 | 17     | met  | OAuth: \`alg\` none or swapped, wrong issuer, audience, expired, unknown key, unreachable key set → 401, no dispatch, nothing of the token kept

## What was found by attacking the second edition
S85 | -      | met  | Console: cross-site POST, missing CSRF token, stale or viewer session, framed page, hostile markup in every shown field → refused or inert
S86 | 20     | met  | An owner that lost its lease (stopped, partitioned, clock moved) → writes nothing; two owners never both decide
S87 | 20     | met  | Database down, slow, read-only, commit unanswered → refused or recorded as unknown, never both, never silent
S88 | -      | met  | Extism surface: allocation loops, block floods, giant output and logs, \`var\` floods, re-entrance, WASI misuse → within budget, blocked
S89 | -      | met  | OCI pull: altered blob, moved tag, older release, path tricks in titles, oversized layer → refused before unpacking
S90 | 18     | met  | \`gateway hook\` with the gateway down, slow, or answering nonsense → the tool does not run
S91 | 22     | met  | Clock jumps forward and back → budgets, windows, sweeps and approvals behave as the monotonic clock says; the jump is on record
`);

import { X509Certificate } from "node:crypto";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { Authority, extension, makeKeys, timeStamping } from "../../support/sigstore/authority.ts";
import { sequence } from "../../support/sigstore/der.ts";
import { Log } from "../../support/sigstore/log.ts";
import { TimeAuthority } from "../../support/sigstore/time-authority.ts";
import {
  issuer,
  type RootChange,
  type Signing,
  SigstoreWorld,
  signedAt,
  subject,
} from "../../support/sigstore/world.ts";
import { siteConfig, siteKey } from "../../support/site.ts";
import { checkStart, startRefusal } from "../../support/start-check.ts";
import { makeSigner, recordedEvents, signBundle, TrustWorld, trustEntry } from "../../support/trust-world.ts";

const sigstore = new SigstoreWorld();
const below = new Authority("ci release", sigstore.authority);
const keys = makeKeys();
const ada = makeSigner();
const signatureFile = "packs/open/pack.sigstore.json";
const nameConstraints = extension("2.5.29.30", sequence(), true);
const prefix = "https://ci.example/team/";
const more = "extensions: { strict: true, trust_policy: trust.yaml }";

const entry = (name: string, named: string, more = ""): string =>
  `{ name: ${name}, identity: { issuer: "${issuer}", subject: { ${named} } }${more} }`;
const release = entry("release", `equal: "${subject}"`);
const oneOf = (...entries: readonly string[]): string => `any_of: { signers: [${entries.join(", ")}] }\n`;
const twoOf = (...entries: readonly string[]): string => oneOf(...entries).replace("{", "{ minimum: 2,");
const revoked = (der: Buffer): string => `revoked: { keys: ["${contentDigest(der)}"] }\n`;

/** How a strict gateway comes to a pack with signatures of certificates; without a word, to a good one. */
interface Case {
  readonly signed?: readonly Signing[];
  readonly root?: RootChange;
  readonly trust?: string;
  /** Changes one line of the signature file, in place. */
  readonly spoil?: (bundle: Material) => void;
}

interface Material {
  readonly verificationMaterial: {
    readonly timestampVerificationData: { readonly rfc3161Timestamps: { signedTimestamp: string }[] };
    readonly tlogEntries: {
      canonicalizedBody: string;
      integratedTime: string;
      readonly inclusionPromise: { signedEntryTimestamp: string };
      readonly inclusionProof: { hashes: string[]; readonly checkpoint: { envelope: string } };
    }[];
  };
}

const { log } = sigstore;
const logged: Case = { signed: [{ log }], root: { logs: [log] } };
const before = { from: new Date("2026-02-01T00:00:00Z"), to: new Date("2026-02-02T00:00:00Z") };

const refusals: readonly (readonly [what: string, check: string, how: Case])[] = [
  ["a look-alike identity", "identity_unknown", { signed: [{ subject: `${subject}-evil` }] }],
  ["the beginning of an identity", "identity_unknown", { signed: [{ subject: subject.slice(0, -1) }] }],
  ["an identity in other letters", "identity_unknown", { signed: [{ subject: subject.toUpperCase() }] }],
  [
    "an identity beside a prefix",
    "identity_unknown",
    { trust: oneOf(entry("team", `prefix: "${prefix}"`)), signed: [{ subject: "https://ci.example/team-evil/main" }] },
  ],
  [
    "an identity that leads out of a prefix",
    "identity_unknown",
    { trust: oneOf(entry("team", `prefix: "${prefix}"`)), signed: [{ subject: `${prefix}../team-evil/main` }] },
  ],
  ["an address in place of a URI", "identity_unknown", { signed: [{ kind: "email" }] }],
  ["a name of another kind", "identity_unreadable", { signed: [{ kind: "dns" }] }],
  ["two names", "identity_unreadable", { signed: [{ alsoNamed: "https://ci.example/other" }] }],
  ["a name with a line break", "identity_unreadable", { signed: [{ subject: `${subject}\n` }] }],
  ["an empty name", "identity_unreadable", { signed: [{ subject: "" }] }],
  ["another issuer", "identity_issuer", { signed: [{ issuer: "https://id.example.evil" }] }],
  ["two issuers", "identity_unreadable", { signed: [{ wrappedIssuer: "https://id.example.evil" }] }],
  ["a certificate of another authority", "certificate_untrusted", { signed: [{ authority: new Authority("evil") }] }],
  [
    "a certificate of another authority of the same name",
    "certificate_untrusted",
    { signed: [{ authority: new Authority("ci authority") }] },
  ],
  [
    "a certificate of an authority below one of the trusted root, which does not name it",
    "certificate_untrusted",
    { signed: [{ authority: below }] },
  ],
  [
    "an authority that was not valid when it was signed",
    "certificate_untrusted",
    {
      root: { authorityValidFor: { start: "2020-01-01T00:00:00Z", end: "2026-02-01T00:00:00Z" } },
    },
  ],
  ["a certificate that had expired when it signed", "certificate_expired", { signed: [{ validity: before }] }],
  ["a certificate for something else", "certificate_usage", { signed: [{ usages: [timeStamping] }] }],
  ["a certificate without a use", "certificate_usage", { signed: [{ usages: [] }] }],
  [
    "a certificate with a limit that nobody reads",
    "certificate_usage",
    { signed: [{ extensions: [nameConstraints] }] },
  ],
  [
    "an authority's certificate",
    "certificate_usage",
    { signed: [{ extensions: [extension("2.5.29.19", sequence(Buffer.from([1, 1, 255])), true)] }] },
  ],
  [
    "an extension given twice",
    "certificate_malformed",
    { signed: [{ extensions: [extension("1.3.6.1.4.1.57264.1.8", Buffer.from([12, 1, 97]))] }] },
  ],
  ["no receipt of a certificate log", "certificate_untrusted", { root: { certificateLogs: [log] } }],
  [
    "a receipt of another certificate log",
    "certificate_untrusted",
    { root: { certificateLogs: [log] }, signed: [{ certificateLog: new Log("log.example") }] },
  ],
  ["no proof of the time", "time_unproven", { signed: [{ timeAuthority: null }] }],
  [
    "an entry of a log without a time",
    "time_unproven",
    { signed: [{ log, timeAuthority: null, promised: false }], root: { logs: [log] } },
  ],
  [
    "a time stamp of another authority",
    "timestamp_invalid",
    { signed: [{ timeAuthority: new TimeAuthority("ci time") }] },
  ],
  ["a time stamp of something else", "timestamp_invalid", { signed: [{ stamped: Buffer.from("other") }] }],
  [
    "a time stamp that was tampered with",
    "timestamp_invalid",
    {
      spoil: ({ verificationMaterial: { timestampVerificationData } }) => {
        const [stamp] = timestampVerificationData.rfc3161Timestamps;
        if (stamp === undefined) throw new Error("expected a time stamp");
        const hex = Buffer.from(stamp.signedTimestamp, "base64").toString("hex");
        expect(hex).to.include(hexOf(signedAt));
        const later = hex.replace(hexOf(signedAt), hexOf(new Date("2026-03-01T12:00:01Z")));
        stamp.signedTimestamp = Buffer.from(later, "hex").toString("base64");
      },
    },
  ],
  [
    "a time stamp that is none",
    "proof_malformed",
    {
      spoil: ({ verificationMaterial: { timestampVerificationData } }) => {
        timestampVerificationData.rfc3161Timestamps[0] = { signedTimestamp: "MAA=" };
      },
    },
  ],
  [
    "five time stamps",
    "bundle_malformed",
    {
      spoil: ({ verificationMaterial: { timestampVerificationData } }) => {
        const stamps = timestampVerificationData.rfc3161Timestamps;
        for (const [stamp] = stamps; stamp !== undefined && stamps.length < 5; ) stamps.push(stamp);
      },
    },
  ],
  ["no entry in the log", "log_entry_missing", { root: { logs: [log] } }],
  ["an entry of another log", "log_entry_invalid", { ...logged, signed: [{ log: new Log("log.example") }] }],
  [
    "an entry of a log that was closed before",
    "log_entry_invalid",
    { ...logged, root: { logs: [log], logValidFor: { start: "2020-01-01T00:00:00Z", end: "2026-02-01T00:00:00Z" } } },
  ],
  [
    "an entry of a log that was closed before, its time by a stamp",
    "log_entry_invalid",
    {
      signed: [{ log, promised: false }],
      root: { logs: [log], logValidFor: { start: "2020-01-01T00:00:00Z", end: "2026-02-01T00:00:00Z" } },
    },
  ],
  ["another time in the log's entry", "log_entry_invalid", spoilEntry((each) => (each.integratedTime = "1772366401"))],
  [
    "another tree under the log's entry",
    "log_entry_invalid",
    spoilEntry(({ inclusionProof }) => {
      inclusionProof.hashes = [Buffer.alloc(32).toString("base64")];
    }),
  ],
  [
    "a log's name that is an expression",
    "bundle_malformed",
    spoilEntry(({ inclusionProof: { checkpoint } }) => {
      checkpoint.envelope = checkpoint.envelope.replace("\u2014 log.example", "\u2014 (.*)*.*!");
    }),
  ],
  [
    "the log's entry of another signature",
    "log_entry_invalid",
    spoilEntry((each) => {
      const body = Buffer.from(each.canonicalizedBody, "base64").toString("utf8");
      each.canonicalizedBody = Buffer.from(body.replace('"signature":"M', '"signature":"N')).toString("base64");
    }),
  ],
  [
    "one identity by two certificates, where two must sign",
    "signers_missing",
    { trust: twoOf(release, trustEntry("ada", ada)), signed: [{}, {}] },
  ],
  [
    "two identities of one signer, where two must sign",
    "signers_missing",
    {
      trust: twoOf(entry("team", `prefix: "${prefix}"`), trustEntry("ada", ada)),
      signed: [{}, { subject: `${prefix}other` }],
    },
  ],
  [
    "the revoked key of a certificate",
    "key_revoked",
    {
      signed: [{ keys }],
      trust: oneOf(release) + revoked(keys.publicKey.export({ format: "der", type: "spki" })),
    },
  ],
  ["the revoked key of an authority", "key_revoked", { trust: oneOf(release) + revoked(spkiOf(sigstore.authority)) }],
  [
    "the revoked key of a time stamping authority",
    "key_revoked",
    { trust: oneOf(release) + revoked(spkiOf(sigstore.timeAuthority)) },
  ],
  ["the revoked key of a log", "key_revoked", { ...logged, trust: oneOf(release) + revoked(log.spki) }],
  [
    "an identity that no longer counted when it signed",
    "key_expired",
    { trust: oneOf(entry("release", `equal: "${subject}"`, ", not_after: 2026-03-01T12:00:00Z")) },
  ],
  ["an identity where keys are asked for", "identity_unknown", { trust: oneOf(trustEntry("ada", ada)) }],
  ["a signature of something else", "signature_invalid", { signed: [{ over: Buffer.from("{}") }] }],
];

describe("a strict gateway that trusts identities", () => {
  let world: TrustWorld;

  beforeEach(async () => {
    world = await TrustWorld.make();
  });

  afterEach(() => world.remove());

  async function prepare({ signed = [{}], root = {}, trust = oneOf(release), spoil }: Case): Promise<void> {
    const payload = await world.statement();
    const lines = signed.map((how) => sigstore.sign(payload, how));
    if (spoil !== undefined) {
      const bundle = JSON.parse(lines[0] ?? "") as Material;
      spoil(bundle);
      lines[0] = `${JSON.stringify(bundle)}\n`;
    }
    await world.write(signatureFile, lines.join(""));
    await world.write("root.json", sigstore.trustedRoot(root));
    await world.write("trust.yaml", `trusted_root: root.json\n${trust}`);
  }

  function start(): Promise<RunningGateway> {
    return startGateway({ folder: world.folder, config: siteConfig({ more, localLog: world.path("local.jsonl") }) });
  }

  const refusal = (): Promise<string> => startRefusal(world.folder, siteConfig({ more }));

  async function loaded(): Promise<JsonObject | undefined> {
    await checkStart(world.folder, siteConfig({ more }));
    const [event, ...others] = await recordedEvents(world.path("data"), "extension");
    expect(others).to.deep.equal([]);
    return event;
  }

  it("loads a pack, names the signer in each decision, and records who signed it and when", async () => {
    await prepare({});
    const gateway = await start();
    const agent = new Agent(gateway.url, siteKey, "signed");
    expect((await agent.call("list_notes")).status).to.equal(200);
    await agent.hangUp();
    const [decision] = await new EvidenceReader(gateway.adminUrl, siteKey).recordsOf((label) => label === "signed");
    await gateway.stop();
    expect(decision?.evaluation?.policies.map(({ signer }) => signer)).to.include("release");
    const [event] = await recordedEvents(world.path("data"), "extension");
    expect(event).to.deep.include({
      trust: "trusted",
      signers: ["release"],
      identities: [{ signer: "release", issuer, subject, signed_at: signedAt.toISOString() }],
    });
  });

  const accepted: readonly (readonly [what: string, signers: readonly string[], how: Case])[] = [
    ["whose identity begins as the policy says", ["team"], { trust: oneOf(entry("team", `prefix: "${prefix}"`)) }],
    [
      "whose identity is an e-mail address",
      ["release"],
      {
        trust: oneOf(entry("release", 'equal: "ada@example.com"')),
        signed: [{ kind: "email", subject: "ada@example.com" }],
      },
    ],
    [
      "whose certificate an authority below another issued",
      ["release"],
      { root: { authorities: [below] }, signed: [{ authority: below }] },
    ],
    [
      "whose certificate a log received",
      ["release"],
      { root: { certificateLogs: [log] }, signed: [{ certificateLog: log }] },
    ],
    ["whose certificate has the issuer in the older place alone", ["release"], { signed: [{ wrappedIssuer: null }] }],
    [
      "whose time a log proves, without an authority",
      ["release"],
      { ...logged, signed: [{ log, timeAuthority: null }] },
    ],
    [
      "whose time an authority proves, and a log without one",
      ["release"],
      { ...logged, signed: [{ log, promised: false }] },
    ],
    [
      "beside a certificate that nobody trusts",
      ["release"],
      { signed: [{}, { authority: new Authority("evil"), subject: "https://a.example/" }] },
    ],
    ["of two with one name", ["release"], { trust: oneOf(release.replace("{ name", `{ key: "${ada.spki}", name`)) }],
  ];
  for (const [what, signers, how] of accepted) {
    it(`loads one ${what}`, async () => {
      await prepare(how);
      expect((await loaded())?.signers).to.deep.equal(signers);
    });
  }

  it("counts an identity and a key as two signers", async () => {
    await prepare({ trust: twoOf(release, trustEntry("ada", ada)) });
    await world.write(signatureFile, sigstore.sign(await world.statement()) + signBundle(ada, await world.statement()));
    expect((await loaded())?.signers).to.deep.equal(["ada", "release"]);
  });

  describe("refuses to start, says which check failed, and records it [S34]:", () => {
    for (const [what, check, how] of refusals) {
      it(what, async () => {
        await prepare(how);
        expect(await refusal()).to.match(new RegExp(`extension refused: \`[^\`]*packs/open\`: ${check}: `));
        const [event, ...others] = await recordedEvents(world.path("data"), "extension");
        expect(event).to.include({ event: "refused", kind: "pack", check });
        expect(others).to.deep.equal([]);
      });
    }
  });

  describe("refuses a trust policy with", () => {
    const root = "trusted_root: root.json\n";
    const named = (identity: string): string =>
      `${root}any_of: { signers: [{ name: release, identity: ${identity} }] }\n`;
    const policies: readonly (readonly [what: string, text: string, fault: string])[] = [
      ["an empty identity", named("{}"), "identity.issuer: expected this key, got nothing"],
      ["an empty issuer", named('{ issuer: "", subject: { equal: "a:b" } }'), "identity.issuer: expected 1 to 1024"],
      ["an empty subject", named('{ issuer: "a", subject: { equal: "" } }'), "identity.subject.equal: expected a URI"],
      ["no subject", named('{ issuer: "a" }'), "identity.subject: expected either `equal` or `prefix`, got neither"],
      ["two subjects", named(`{ issuer: "a", subject: { equal: "a:b", prefix: "${prefix}" } }`), "`prefix`, got both"],
      [
        "a prefix without a slash at its end",
        named('{ issuer: "a", subject: { prefix: "https://ci.example/team" } }'),
        "identity.subject.prefix: expected a URL",
      ],
      [
        "a prefix of every host",
        named('{ issuer: "a", subject: { prefix: "https://" } }'),
        "identity.subject.prefix: expected a URL",
      ],
      ["no trusted root", oneOf(release), "identity: expected `trusted_root` beside it"],
      [
        "a trusted root that is not there",
        `trusted_root: no.json\n${oneOf(release)}`,
        "trusted_root: expected a readable file",
      ],
      [
        "a trusted root that is none",
        `trusted_root: trust.yaml\n${oneOf(release)}`,
        "trusted_root: expected a Sigstore TrustedRoot",
      ],
      [
        "a misspelt end of validity",
        `trusted_root: misspelt.json\n${oneOf(release)}`,
        "trusted_root: expected a Sigstore TrustedRoot",
      ],
      [
        "no authority in the trusted root",
        `trusted_root: nobody.json\n${oneOf(release)}`,
        "trusted_root: expected at least one certificate authority",
      ],
      [
        "a limit in an authority's certificate that nobody reads",
        `trusted_root: limited.json\n${oneOf(release)}`,
        "trusted_root: expected authorities without a critical extension that is not read",
      ],
      [
        "no source of time in the trusted root",
        `trusted_root: timeless.json\n${oneOf(release)}`,
        "trusted_root: expected a time stamping authority or a transparency log",
      ],
      [
        "one identity under two names",
        `${root}${oneOf(release, release.replace("release", "twin"))}`,
        "expected an identity of its own",
      ],
      [
        "an identity that a prefix covers",
        `${root}${oneOf(release, entry("team", `prefix: "${prefix}"`))}`,
        "expected an identity of its own",
      ],
    ];
    for (const [what, text, fault] of policies) {
      it(what, async () => {
        await prepare({});
        await world.write(
          "misspelt.json",
          sigstore.trustedRoot().replace('"validFor":{"start"', '"validFor":{"ends":"2026-01-01T00:00:00Z","start"'),
        );
        await world.write("nobody.json", sigstore.trustedRoot({ authorities: [] }));
        const limited = new Authority("limited", undefined, [nameConstraints]);
        await world.write("limited.json", sigstore.trustedRoot({ authorities: [limited] }));
        await world.write("timeless.json", sigstore.trustedRoot({ timeAuthorities: [] }));
        await world.write("trust.yaml", text);
        expect(await refusal())
          .to.include("invalid configuration")
          .and.to.include(fault);
      });
    }
  });
});

function spoilEntry(change: (entry: Material["verificationMaterial"]["tlogEntries"][number]) => void): Case {
  return {
    ...logged,
    spoil: ({ verificationMaterial: { tlogEntries } }) => {
      const [first] = tlogEntries;
      if (first === undefined) throw new Error("expected an entry");
      change(first);
    },
  };
}

/** The hex of a time as a time stamp spells it. */
function hexOf(date: Date): string {
  return Buffer.from(date.toISOString().replace(/\D/g, "").slice(0, 14)).toString("hex");
}

function spkiOf({ chain: [own = Buffer.alloc(0)] }: Pick<Authority, "chain">): Buffer {
  return new X509Certificate(own).publicKey.export({ format: "der", type: "spki" });
}

import { enumeration, flag, integer, object, onlyWhere, optional, string } from "./schema.ts";

export const dataDirSchema = string(
  "Folder of the state and the evidence, relative to the configuration file's folder.",
  { format: "path", default: "./data" },
);

export const stateSchema = object("Persistence.", {
  enabled: flag("Keep state and evidence on disk. False: in memory, lost at exit.", { default: true }),
  mark: optional(
    string(
      "File outside `data_dir`, on another disk or volume at best, that keeps how far the evidence of each tenant is; relative to the configuration file's folder. It shows a data folder that was put back as it was before: without it, approvals used since can be used again. Left out: none.",
      { format: "path" },
    ),
  ),
});

const ofReplicas = ["postgres"] as const;

export const storeSchema = object("The engine that keeps state and evidence.", {
  engine: enumeration(
    "`leveldb`: in `data_dir`, for one gateway. `postgres`: in a database, for replicas of which one serves at a time and the others forward to it; each keeps a copy in its `data_dir`.",
    ["leveldb", "postgres"],
    { default: "leveldb" },
  ),
  url_env: onlyWhere(
    "engine",
    ofReplicas,
    string("Environment variable that holds the database's URL: `postgres://user:password@host/name`.", {
      format: "variable",
    }),
  ),
  secret_env: onlyWhere(
    "engine",
    ofReplicas,
    string(
      "Environment variable that holds the secret of the replicas, 32 to 512 characters, the same for all: they prove it to each other, and the key files in the database are sealed with it.",
      { format: "variable" },
    ),
  ),
  host_env: onlyWhere(
    "engine",
    ofReplicas,
    optional(
      string(
        "Environment variable that holds the name or address at which other replicas reach this one. Left out: the machine's host name.",
        { format: "variable" },
      ),
    ),
  ),
  replica_port: onlyWhere(
    "engine",
    ofReplicas,
    integer("Port for other replicas, at `listen.admin_host`. Never expose it publicly. 0 takes any free port.", {
      minimum: 0,
      maximum: 65_535,
      default: 8_083,
    }),
  ),
  lease_ms: onlyWhere(
    "engine",
    ofReplicas,
    integer("Time after which a replica that no longer renews its lease is replaced.", {
      minimum: 1_000,
      maximum: 600_000,
      default: 10_000,
    }),
  ),
});

export const reportsSchema = object("Tables for auditors in a relational database, which the gateway fills.", {
  url_env: optional(
    string(
      "Environment variable that holds the URL of the PostgreSQL database that the records and the usage of all tenants are copied to: `postgres://user:password@host/name`. Left out: none.",
      { format: "variable" },
    ),
  ),
});

export const resilienceSchema = object("Backups of the whole state except the keys.", {
  enabled: flag(
    "Serve `POST /admin/v1/resilience/backup` and `GET /admin/v1/resilience/backups`. True needs `state.enabled`.",
    { default: false },
  ),
  tenant: optional(
    string(
      "Tenant whose admins may create backups, which contain the data of all tenants, and whose operators may list them. Left out: the tenant that all `keys` belong to; with several tenants, nobody.",
      { format: "name" },
    ),
  ),
  backup_dir: string(
    "Folder of the backups, relative to the configuration file's folder; created with mode 0700. It must not be a symbolic link, accessible to other users, inside `data_dir`, or contain it.",
    { format: "path", default: "./backups" },
  ),
  keep: integer("Backups to keep. After a further one is complete, the oldest is deleted.", {
    minimum: 1,
    maximum: 1_000,
    default: 7,
  }),
});

export const resilienceSchema = {
  type: "object",
  description: "Backups of everything that the gateway keeps, its keys left out.",
  fields: {
    enabled: {
      type: "boolean",
      default: false,
      description:
        "Serve `POST /admin/v1/resilience/backup` and `GET /admin/v1/resilience/backups`. True needs `state.enabled`.",
    },
    tenant: {
      type: "string",
      format: "name",
      default: null,
      description:
        "Tenant whose admins make backups, which hold what all tenants have, and whose operators list them. None: the one that all `keys` belong to; nobody where there are several.",
    },
    backup_dir: {
      type: "string",
      format: "path",
      default: "./backups",
      description:
        "Folder of the backups, relative to the configuration file's folder; made with mode 0700. No symbolic link, not open to others, neither inside `data_dir` nor around it.",
    },
    keep: {
      type: "integer",
      min: 1,
      max: 1_000,
      default: 7,
      description: "Backups that stay. Once a further one is complete, the oldest is deleted.",
    },
  },
} as const;

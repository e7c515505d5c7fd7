import { quotePosix as quote } from "./quote.ts";
import type { ShapeCommand } from "./shape.ts";
import { type Offer, walkOf } from "./walk.ts";

/**
 * A completion script for bash 4 and later. What is typed is compared and never evaluated: it stands in `case` as the
 * subject, and in `compgen` behind `--`.
 */
export function bashScript(program: ShapeCommand): string {
  const { steps, taking, places, commands, flags } = walkOf(program);
  return `# bash completion for gateway, as \`gateway completion bash\` prints it
_gateway() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at=gateway place=0 value='' word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then continue; fi
    if [[ -n $value ]]; then value=''; continue; fi
    case "$at $word" in
${steps.map(([subject, path]) => `      ${quote(subject)}) at=${quote(path)} place=0 ;;`).join("\n")}
${taking.map(([subject, value]) => `      ${quote(subject)}) value=${quote(value)} ;;`).join("\n")}
      *' '-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ $cur == '=' ]]; then cur=''; fi
  if [[ -z $value && $cur == -* ]]; then
    case "$at" in
${flags.map(([path, offers]) => `      ${quote(path)}) value=${words(offers)} ;;`).join("\n")}
    esac
  elif [[ -z $value ]]; then
    case "$at $place" in
${places.map(([subject, value]) => `      ${quote(subject)}) value=${quote(value)} ;;`).join("\n")}
    esac
  fi
  if [[ $value == '@command' ]]; then
    case "$at" in
${commands.map(([path, offers]) => `      ${quote(path)}) value=${words(offers)} ;;`).join("\n")}
    esac
  fi
  COMPREPLY=()
  case "$value" in
    @file) compopt -o default ;;
    @folder) compopt -o dirnames ;;
    @text) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$value" -- "$cur") ;;
  esac
}
complete -F _gateway gateway
`;
}

function words(offers: readonly Offer[]): string {
  return quote(offers.map(([word]) => word).join(" "));
}

import { quotePosix as quote } from "./quote.ts";
import type { ShapeCommand } from "./shape.ts";
import { type Offer, walkOf } from "./walk.ts";

/** A completion script for zsh, to be sourced or put as \`_gateway\` in \`fpath\`. What is typed is compared and never evaluated. */
export function zshScript(program: ShapeCommand): string {
  const { steps, taking, places, commands, flags } = walkOf(program);
  return `#compdef gateway
# zsh completion for gateway, as \`gateway completion zsh\` prints it
_gateway() {
  local at=gateway value='' word
  local -i place=0 i
  local -a told
  for ((i = 2; i <= CURRENT; i++)); do
    word=\${(Q)words[i]}
    if ((i == CURRENT)); then
      [[ -z $value && $word == --*=* ]] || break
      compset -P '*='
      word=\${word%%=*}
    fi
    if [[ -n $value ]]; then value=''; continue; fi
    case "$at $word" in
${steps.map(([subject, path]) => `      ${quote(subject)}) at=${quote(path)} place=0 ;;`).join("\n")}
${taking.map(([subject, value]) => `      ${quote(subject)}) value=${quote(value)} ;;`).join("\n")}
      *' '-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ -z $value && $words[CURRENT] == -* ]]; then
    case "$at" in
${flags.map(([path, offers]) => `      ${quote(path)}) told=(${pairs(offers)}) ;;`).join("\n")}
    esac
    _describe -t options option told
    return
  fi
  if [[ -z $value ]]; then
    case "$at $place" in
${places.map(([subject, value]) => `      ${quote(subject)}) value=${quote(value)} ;;`).join("\n")}
    esac
  fi
  case "$value" in
    @command)
      case "$at" in
${commands.map(([path, offers]) => `        ${quote(path)}) told=(${pairs(offers)}) ;;`).join("\n")}
      esac
      _describe -t commands command told ;;
    @file) _files ;;
    @folder) _files -/ ;;
    @text | '') ;;
    *) compadd -- \${(s: :)value} ;;
  esac
}
if [[ $funcstack[1] == _gateway ]]; then _gateway "$@"; else compdef _gateway gateway; fi
`;
}

/** As `_describe` takes them. */
function pairs(offers: readonly Offer[]): string {
  return offers.map(([word, description]) => quote(`${word}:${description}`)).join(" ");
}

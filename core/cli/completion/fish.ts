import { quoteFish as quote } from "./quote.ts";
import type { ShapeCommand } from "./shape.ts";
import { type Offer, walkOf } from "./walk.ts";

/** A completion script for fish 3.4 and later. What is typed is compared and never evaluated. */
export function fishScript(program: ShapeCommand): string {
  const { steps, taking, places, commands, flags } = walkOf(program);
  return `# fish completion for gateway, as \`gateway completion fish\` prints it
# Prints the command, what the current word is by the option before it, and what it is by its place.
function __gateway_state
    set -l at gateway
    set -l place 0
    set -l value ''
    set -l here ''
    set -l tokens (commandline -opc)
    set -e tokens[1]
    for word in $tokens
        if test -n "$value"
            set value ''
            continue
        end
        switch "$at $word"
${steps.map(([subject, path]) => branch(subject, `set at ${quote(path)}; set place 0`)).join("\n")}
${taking.map(([subject, value]) => branch(subject, `set value ${quote(value)}`)).join("\n")}
            case '* -*'
            case '*'
                set place (math $place + 1)
        end
    end
    switch "$at $place"
${places.map(([subject, value]) => branch(subject, `set here ${quote(value)}`)).join("\n")}
    end
    printf '%s\\n' $at "$value" "$here"
end

function __gateway_is
    set -l state (__gateway_state)
    test "$state[2]" = $argv[1]; or test -z "$state[2]" -a "$state[3]" = $argv[1]
end

function __gateway_words
    set -l state (__gateway_state)
    if test -z "$state[2]"; and string match -q -- '-*' (commandline -ct)
        switch "$state[1]"
${flags.map(([path, offers]) => branch(path, tell(offers))).join("\n")}
        end
        return
    end
    set -l value $state[2]
    test -n "$value"; or set value $state[3]
    switch "$value"
        case @command
            switch "$state[1]"
${commands.map(([path, offers]) => branch(path, tell(offers))).join("\n")}
            end
        case '' '@*'
        case '*'
            string split ' ' -- $value
    end
end

complete -c gateway -e
complete -c gateway -f -a '(__gateway_words)'
complete -c gateway -n '__gateway_is @file' -F
complete -c gateway -n '__gateway_is @folder' -f -a '(__fish_complete_directories)'
`;
}

function branch(subject: string, command: string): string {
  return `            case ${quote(subject)}\n                ${command}`;
}

/** A line for each word, with what it does behind a tab. */
function tell(offers: readonly Offer[]): string {
  return `printf '%s\\t%s\\n' ${offers.map((offer) => offer.map(quote).join(" ")).join(" ")}`;
}

/** `trilithon completion bash`: a completion script, made from the commands themselves. */
import { Argument, type Command } from 'commander'
import { print } from './output.ts'

export function addCompletionCommand(program: Command): void {
  const shell = new Argument('<SHELL>', 'the shell it is for').choices(['bash', 'zsh'])
  program
    .command('completion')
    .addArgument(shell)
    .description('print a completion script: source <(trilithon completion bash)')
    .action((name: string) => print(completionScript(program, name === 'zsh')))
}

/** One `case` a command: its words are what may follow. */
function completionScript(program: Command, isZsh: boolean): string {
  const cases = listCommands(program, []).map(({ path, words }) => {
    return `    '${path.join(' ')}') words='${words.join(' ')}' ;;`
  })
  return [
    ...(isZsh ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_trilithon() {',
    "  local path='' word words=''",
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    case "$word" in -*) ;; *) path="${path:+$path }$word" ;; esac',
    '  done',
    '  case "$path" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -F _trilithon trilithon',
  ].join('\n')
}

interface CompletedCommand {
  readonly path: readonly string[]
  readonly words: readonly string[]
}

function listCommands(command: Command, path: readonly string[]): readonly CompletedCommand[] {
  const flags = command.options.filter(({ hidden }) => !hidden).map(({ long }) => long ?? '')
  const names = command.commands.map((sub) => sub.name())
  const here = { path, words: [...names, ...flags, '--help'] }
  const below = command.commands.flatMap((sub) => listCommands(sub, [...path, sub.name()]))
  return [here, ...below]
}

/**
 * The rules that flags and arguments of all commands share: a flag that takes a value takes one, once, and
 * nothing that was given is empty. Of two values the last one would be taken and the first passed over; an
 * empty one comes of a variable that a script has not set.
 */
import type { Command, Option } from 'commander'
import { CliError, exitUsage } from './exit.ts'

/** The parser of an option that may be given several times: a value more. */
export function gather(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** Another parser, such as the one of `choices`, keeps the last value alone. */
function gathers(option: Option): boolean {
  return option.variadic || option.parseArg === gather
}

/** Looks at this command and all below it. */
export function strict(command: Command): void {
  strictBelow(command)
  command.hook('preAction', (_, asked) => checkArguments(asked))
}

function strictBelow(command: Command): void {
  for (const option of command.options) watch(command, option)
  for (const one of command.commands) strictBelow(one)
}

function watch(command: Command, option: Option): void {
  if (!option.required && !option.optional) return
  const flag = option.long ?? option.flags
  let times = 0
  command.on(`option:${option.name()}`, (value: unknown) => {
    times += 1
    if (value === '') throw new CliError(`${flag} is given an empty value`, exitUsage)
    if (times === 1 || gathers(option)) return
    throw new CliError(`${flag} is given twice; it takes one value`, exitUsage)
  })
}

function checkArguments(command: Command): void {
  const at = command.args.indexOf('')
  if (at < 0) return
  const name = command.registeredArguments[at]?.name() ?? `argument ${at + 1}`
  throw new CliError(`${name} is empty`, exitUsage)
}

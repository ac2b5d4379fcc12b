/** A file that defines an index over cells: YAML; its mistakes are reported with line and column. */
import { isNode } from 'yaml'
import {
  checkDefinition,
  type DefinitionProblem,
  type IndexDefinition,
} from '../cells/index-definition.ts'
import { readYaml, type YamlMistake } from '../config/yaml-text.ts'
import { CliError, exitUsage } from './exit.ts'
import { readInput } from './input-file.ts'
import { say } from './output.ts'

export async function readIndexFile(path: string): Promise<IndexDefinition> {
  const file = path === '-' ? 'stdin' : path
  const read = indexOfText(await readInput(path))
  if ('definition' in read) return read.definition
  for (const { line, column, message } of read.mistakes)
    say(`${file}:${line}:${column}: ${message}`)
  const count = read.mistakes.length
  throw new CliError(`${file} has ${count === 1 ? '1 mistake' : `${count} mistakes`}`, exitUsage)
}

export interface Mistake {
  readonly line: number
  readonly column: number
  readonly message: string
}

export function indexOfText(
  text: string,
): { readonly definition: IndexDefinition } | { readonly mistakes: readonly Mistake[] } {
  const yaml = readYaml(text)
  if (!yaml.ok) {
    const told = ({ text: message, ...place }: YamlMistake): Mistake => ({ ...place, message })
    return { mistakes: yaml.mistakes.map(told) }
  }
  const { document, findPlace } = yaml
  const value: unknown = document.toJS()
  const checked = checkDefinition(value)
  if (checked.ok) return { definition: checked.definition }
  /** The nearest thing on the way to it that is there. */
  const findOffset = ({ at }: DefinitionProblem): number => {
    for (let length = at.length; length > 0; length--) {
      const node: unknown = document.getIn(at.slice(0, length), true)
      if (isNode(node)) return node.range?.[0] ?? 0
    }
    return document.contents?.range?.[0] ?? 0
  }
  return {
    mistakes: checked.problems.map((one) => ({
      ...findPlace(findOffset(one)),
      message: one.message,
    })),
  }
}

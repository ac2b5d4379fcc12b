/**
 * The values that the sources of a configuration give for a set of settings, one each: flag > environment >
 * file. Every value keeps its origin; problems are gathered, not thrown.
 */
import { dirname, resolve } from 'node:path'
import {
  describeOrigin,
  scalarText,
  type ConfigProblem,
  type Located,
  type LocatedMap,
  type Origin,
  type Warning,
} from './source.ts'
import { nameFlag, nameVariable, variablePrefix, type Setting } from './settings.ts'
import { refuse, readText, type Read } from './values.ts'
import { nearest, unknownWord } from '../base/suggest.ts'

/** The settings there are. */
export interface SettingsSchema {
  readonly settings: readonly Setting[]
  /** Settings that are lists in the file, and how a flag or variable writes one. */
  readonly lists: Readonly<Record<string, (text: string, origin: Origin) => Located>>
}

export interface ConfigSources {
  readonly file?: { readonly path: string; readonly root: LocatedMap }
  readonly environment: Readonly<Record<string, string | undefined>>
  /** By setting name. */
  readonly flags: ReadonlyMap<string, string>
  /** Relative paths of flags and variables start here; those of the file at its own folder. */
  readonly workingFolder: string
}

/** A setting's value in force, as text, and where it came from. */
export interface EffectiveSetting {
  readonly name: string
  readonly value: string
  readonly origin: Origin
}

export type Take = <T>(name: string, read: (located: Located) => Read<T>) => T | undefined

export interface SettingReaders {
  /** The value, or undefined when it is not given or wrong (which is then a problem). */
  readonly take: Take
  /** As `take`, and its absence is a problem; `example` shows what to write. */
  readonly need: <T>(
    name: string,
    example: string,
    read: (located: Located) => Read<T>,
  ) => T | undefined
  /** A path, made absolute. */
  readonly path: (name: string) => string | undefined
}

/** Readers of the given values; they add each problem to `problems`. */
export function settingReaders(
  given: ReadonlyMap<string, Located>,
  sources: ConfigSources,
  problems: ConfigProblem[],
): SettingReaders {
  const take: Take = (name, read) => {
    const located = given.get(name)
    if (located === undefined) return undefined
    const result = read(located)
    if (result.ok) return result.value
    for (const { at, reason } of result.problems) {
      problems.push({ where: describeOrigin(at), text: `${name}: ${reason}` })
    }
    return undefined
  }
  return {
    take,
    need: (name, example, read) => {
      if (given.has(name)) return take(name, read)
      const where = sources.file?.path ?? 'configuration'
      problems.push({ where, text: `"${name}" is missing; write for example ${example}` })
      return undefined
    },
    path: (name) => {
      const text = take(name, readPath)
      if (text === undefined) return undefined
      const isFromFile = given.get(name)?.origin.kind === 'file'
      const file = isFromFile ? sources.file : undefined
      return resolve(file === undefined ? sources.workingFolder : dirname(file.path), text)
    },
  }
}

/** Words that a shell replaces in a path, and no other program: a folder of that name would be made. */
const shellWords = /^~[\w.-]*(?=\/|$)|\$(?:\w+|\{[^}]*\}|\([^)]*\))/

function isPath(text: string): boolean {
  return text.trim() !== '' && !text.includes('\0')
}

export function readPath(located: Located): Read<string> {
  const path = readText(located, isPath, 'names a file or folder')
  const [word] = (path.ok && shellWords.exec(path.value)) || []
  if (word === undefined) return path
  return refuse(located.origin, `${word} means nothing here; write the whole path`)
}

/** Variables that container systems add for a service of this name. */
const containerVariable =
  /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/
/** The variable that commands read which ask a cluster. */
const clientVariable = 'TRILITHON_URL'
/** The variable by which tests have a node act as a build of before (`../members/SPEC.md`). */
export const actAsVariable = 'TRILITHON_ACT_AS_VERSION'

/** Variables with the prefix of this program that are none of its settings: slips, mostly. */
export function unknownVariables(
  { settings }: Pick<SettingsSchema, 'settings'>,
  environment: ConfigSources['environment'],
): readonly Warning[] {
  const known = [...settings.map(({ name }) => nameVariable(name)), clientVariable, actAsVariable]
  const isUnknown = (name: string): boolean =>
    name.toUpperCase().startsWith(variablePrefix) &&
    !known.includes(name) &&
    !containerVariable.test(name)
  const given = Object.keys(environment).filter((name) => environment[name] !== undefined)
  return given.filter(isUnknown).map((name) => {
    // By what is behind the prefix that all have.
    const guess = nearest(
      name.slice(variablePrefix.length).toUpperCase(),
      known.map((one) => one.slice(variablePrefix.length)),
    )
    const advice = guess === undefined ? '' : `; did you mean ${variablePrefix}${guess}?`
    const text = `this process has no such setting, and passes over it${advice}`
    return { setting: name, where: name, text }
  })
}

/** The value in force of each setting that is given at all. */
export function gather(
  schema: SettingsSchema,
  sources: ConfigSources,
  problems: ConfigProblem[],
): Map<string, Located> {
  const given = new Map<string, Located>()
  if (sources.file !== undefined) gatherFile(schema, sources.file.root, given, problems)
  for (const { name } of schema.settings) {
    const variable = sources.environment[nameVariable(name)]
    const flag = sources.flags.get(name)
    if (flag !== undefined) {
      given.set(name, textValue(schema, name, flag, { kind: 'flag', name: nameFlag(name) }))
    } else if (variable !== undefined) {
      const origin: Origin = { kind: 'environment', name: nameVariable(name) }
      given.set(name, textValue(schema, name, variable, origin))
    }
  }
  return given
}

function textValue(schema: SettingsSchema, name: string, text: string, origin: Origin): Located {
  return schema.lists[name]?.(text, origin) ?? scalarText(text, origin)
}

/** `limits` and `tls` are maps of settings; every other field is one. */
function gatherFile(
  schema: SettingsSchema,
  root: LocatedMap,
  given: Map<string, Located>,
  problems: ConfigProblem[],
  prefix = '',
): void {
  const known = knownFields(schema, prefix)
  for (const [field, { value, origin }] of root.fields) {
    const name = `${prefix}${field}`
    const isSection = knownFields(schema, `${name}.`).length > 0
    if (!known.includes(field)) {
      problems.push({ where: describeOrigin(origin), text: unknownWord('field', field, known) })
    } else if (!isSection) given.set(name, value)
    else if (name === 'tls' && value.kind === 'map' && value.fields.size === 0) {
      const text =
        'tls is empty, and so there would be none: name cert_file and key_file, or leave it out'
      problems.push({ where: describeOrigin(value.origin), text })
    } else if (value.kind === 'map') gatherFile(schema, value, given, problems, `${name}.`)
    else {
      const text = `${name} is a map of ${knownFields(schema, `${name}.`).slice(0, 2).join(', ')} …`
      problems.push({ where: describeOrigin(value.origin), text })
    }
  }
}

/** The names that may stand in the section `prefix` (`''` or such as `limits.`). */
function knownFields({ settings }: SettingsSchema, prefix: string): readonly string[] {
  const inside = settings.filter(({ name }) => name.startsWith(prefix))
  return [...new Set(inside.map(({ name }) => name.slice(prefix.length).split('.')[0] ?? ''))]
}

/** Those that have a value, with its origin. */
export function settingsInForce(
  origins: ReadonlyMap<string, Origin>,
  values: readonly (readonly [name: string, value: string | undefined])[],
): readonly EffectiveSetting[] {
  return values.flatMap(([name, value]) => {
    const origin = origins.get(name) ?? { kind: 'default' as const }
    return value === undefined ? [] : [{ name, value, origin }]
  })
}

/**
 * The content of groups in words: rows of tables as the schemas that the folder itself holds describe them, cells as JSON.
 * All else is shown as text where it is text, and as base64 where it is not.
 */
import { StoreError } from '../base/errors.ts'
import { bytesOfGroup, groupOfBytes, type GroupId } from '../base/ids.ts'
import { decodeTuple } from '../base/tuple.ts'
import { unpackBody } from '../cells/body.ts'
import { isShardOf, shardGroup } from '../cells/shard.ts'
import { isDatastore } from '../cells/cell.ts'
import { cellSchemaOf, cellVersion, shardOfGroup } from '../cells/cell-table.ts'
import { formatGroupHex } from '../inspect/finding.ts'
import type { DataLooks } from '../inspect/data-looks.ts'
import { readableBytes, readableKey, type Readable } from '../inspect/readable.ts'
import { compileSchema } from '../tables/compile.ts'
import type { CompiledSchema } from '../tables/compiled.ts'
import {
  groupWords,
  rootOfGroup,
  schemaOfGroup,
  type GroupContext,
} from '../tables/group-context.ts'
import { currentKey, readVersion, registryGroup } from '../tables/registry-rows.ts'
import { decodeRowKey, keyInWords } from '../tables/row-key.ts'
import { decodeRow } from '../tables/row-value.ts'
import { CliError, exitUsage } from './exit.ts'

/** `looks`: of the data store that the schemas are in; absent: there is none. */
export function makeReadable(looks: Pick<DataLooks, 'row'> | undefined): Readable {
  const schemas = new Map<string, CompiledSchema | undefined>()
  const schemaNamed = (name: string): CompiledSchema | undefined => {
    if (!schemas.has(name)) schemas.set(name, readSchema(looks, name))
    return schemas.get(name)
  }
  const contextFor = (group: GroupId): GroupContext | undefined => {
    const name = schemaOfGroup(group)
    if (name === undefined) return undefined
    const schema = name === cellVersion.schema.name ? cellSchemaOf(group) : schemaNamed(name)
    const root = schema && rootOfGroup(schema, group)
    return schema && root && { schema, ...root, group }
  }
  return {
    group: (group) => {
      const context = contextFor(group)
      return context === undefined ? plainName(group) : groupWords(context)
    },
    key: (group, key) => {
      const context = contextFor(group)
      return context === undefined ? readableKey(key) : keyInWords(context, key)
    },
    value: (group, key, value) => {
      const context = contextFor(group)
      return (context && rowIn(context, key, value)) ?? readableBytes(value)
    },
  }
}

/** The shortest form in which `--group` takes the group. */
export function formatGroup(hex: string): string {
  const shard = shardOfGroup(groupOfBytes(Buffer.from(hex, 'hex')))
  return shard === undefined ? hex : `${shard.datastore}/${shard.shard}`
}

/** The group that `--group` names: its bytes in hexadecimal digits, or a shard of a datastore. */
export function parseGroup(text: string): GroupId {
  if (/^(?:[0-9a-f]{2}){1,1024}$/.test(text)) return groupOfBytes(Buffer.from(text, 'hex'))
  const [, datastore = '', digits = ''] = /^([\w.-]+)\/(\d{1,4})$/.exec(text) ?? []
  if (isDatastore(datastore) && isShardOf(datastore, Number(digits)))
    return shardGroup(datastore, Number(digits))
  const forms =
    'the hexadecimal digits that store stats prints, or DATASTORE/SHARD, such as trips/17'
  throw new CliError(`--group wants ${forms}, not "${text}"`, exitUsage)
}

function plainName(group: GroupId): string {
  const elements = decodeTuple(bytesOfGroup(group))
  return elements === undefined
    ? `group ${formatGroupHex(group)}`
    : `group ${elements.map(shown).join(' ')}`
}

function shown(element: Uint8Array | string | number): string {
  return element instanceof Uint8Array ? Buffer.from(element).toString('hex') : String(element)
}

function readSchema(
  looks: Pick<DataLooks, 'row'> | undefined,
  name: string,
): CompiledSchema | undefined {
  const bytes = looks?.row(registryGroup(name), currentKey)
  const version = bytes && readVersion(name, bytes)
  return version && compileSchema(version)
}

/** Undefined when the bytes are no row of a table, or when the schema cannot decode the row. */
function rowIn(context: GroupContext, key: Uint8Array, value: Uint8Array): unknown {
  const found = decodeRowKey(context, key)
  if (found === undefined) return undefined
  try {
    const row = decodeRow(found.table, found.values, value)
    return Object.fromEntries(Object.entries(row).map(([name, one]) => [name, plain(name, one)]))
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}

/** The bodies of cells are bytes to their table, and JSON to their users. */
function plain(name: string, value: unknown): unknown {
  if (!(value instanceof Uint8Array)) return value
  const body = name === 'body' ? unpackBody(value) : undefined
  return body ?? { base64: Buffer.from(value).toString('base64') }
}

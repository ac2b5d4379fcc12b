/** Entries of an index over cells, from the bytes that the log has of them. */
import { present } from '../../src/base/assert.ts'
import { equalBytes, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { bytesOfGroup } from '../../src/base/ids.ts'
import { cellVersion } from '../../src/cells/cell-table.ts'
import type { NumberedIndex } from '../../src/cells/index-definition.ts'
import { fieldValues, encodePlace } from '../../src/cells/index-row.ts'
import type { IndexValue } from '../../src/cells/index-values.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { decodeEntry } from '../../src/tables/entries.ts'
import { decodeGlobalKey, indexGroups } from '../../src/tables/global-entries.ts'
import type { StandingEntry } from '../checkers/index-checker.ts'

export interface CellEntry {
  readonly rowKey: string
  readonly fields: Readonly<Record<string, unknown>>
}

const table = present(compileSchema(cellVersion).tables.get('Indexed'), 'rows in indexes are kept')
const [index] = table.globals
const groups = new Set(
  index === undefined ? [] : indexGroups(index).map((group) => latin1(bytesOfGroup(group))),
)

/** Those of one value of the shard field. */
export function buildCellEntries(
  definition: NumberedIndex,
  value: IndexValue,
  standing: readonly StandingEntry[],
): readonly CellEntry[] {
  const place = encodePlace(definition, value)
  return standing.flatMap(({ group, key, value: held }) => {
    if (index === undefined || !groups.has(group)) return []
    const decoded = decodeGlobalKey(table, index, fromLatin1(key))
    const [there] = decoded?.parts ?? []
    if (decoded === undefined || !(there instanceof Uint8Array)) return []
    if (!equalBytes(there, place)) return []
    const { row_key: rowKey, fields } = decodeEntry(table, decoded, held)
    if (!(fields instanceof Uint8Array)) return []
    const values = fieldValues(definition, fields)
    const byField: Record<string, unknown> = {}
    for (const [nth, { field }] of definition.fields.entries()) byField[field] = values[nth] ?? null
    return [{ rowKey: String(rowKey), fields: byField }]
  })
}

/** `PLACEMENT IN SET name`, `PLACEMENT IN REGION name`, `PLACEMENT BY property`: of a table, or of the whole schema. */
import type { Cursor } from './ddl-cursor.ts'
import type { TablePlacement } from './model.ts'

/** After `PLACEMENT`. A name that is no word stands in double quotes. */
export function parsePlacement(cursor: Cursor): TablePlacement {
  if (cursor.needOneOf(['IN', 'BY']) === 'BY') {
    return { kind: 'by', property: cursor.needName('the name of a property').text }
  }
  const kind = cursor.needOneOf(['SET', 'REGION']) === 'SET' ? 'set' : 'region'
  const name = `the name of a ${kind}`
  const text = cursor.takeToken(name, 'string')?.text.slice(1, -1)
  return { kind, name: text ?? cursor.needToken(name, 'word').text }
}

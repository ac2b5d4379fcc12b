/** Defaults: only of required properties, never of a part of the key, and of the property's type. */
import { fitByKind, findGivenDefault } from './default.ts'
import type { Complaints, TableDraft } from './draft.ts'
import { defaultCharsMax } from './limits.ts'
import type { Property } from './model.ts'
import type { SchemaPath } from './problem.ts'

export function checkDefaults(table: TableDraft, at: SchemaPath, complaints: Complaints): void {
  const inKey = new Set(table.key?.parts.map(({ property }) => property))
  for (const [place, property] of table.properties.entries()) {
    const here = [...at, 'properties', place]
    if (inKey.has(property.name) && property.default !== undefined) {
      const message = `table ${table.name}: ${property.name} is in the primary key and has a default`
      complaints.add(
        'bad-default',
        [...here, 'default'],
        message,
        'leave it out: whoever writes a row names it',
      )
    } else {
      checkProperty(`table ${table.name}: `, property.name, property, here, complaints)
    }
  }
}

function checkProperty(
  prefix: string,
  path: string,
  property: Property,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const { presence, type, default: literal } = property
  if (type.kind === 'message') {
    for (const [place, field] of type.properties.entries()) {
      const here = [...at, 'properties', place]
      checkProperty(prefix, `${path}.${field.name}`, field, here, complaints)
    }
  }
  if (literal === undefined) return
  const here = [...at, 'default']
  if (presence !== 'required') {
    const message = `${prefix}${path} is ${presence} and has a default`
    const hint = 'a default is of required properties: the others may be absent'
    complaints.add('bad-default', here, message, hint)
  } else if (!fitByKind[type.kind].fits(literal)) {
    const given = findGivenDefault(property)
    const shown = (given?.words ?? JSON.stringify(literal)).slice(0, 40)
    const message = `${prefix}the default ${shown} of ${path} does not fit ${type.kind}`
    complaints.add('bad-default', here, message, given?.hint ?? fitByKind[type.kind].words)
  } else if (typeof literal === 'string' && literal.length > defaultCharsMax) {
    const message = `${prefix}the default of ${path} has ${literal.length} characters, at most ${defaultCharsMax}`
    complaints.add('bad-default', here, message)
  }
}

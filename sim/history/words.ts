/** Elements, lists and operations as text for a person. */
import type { Element, HistoryOperation, MicroOperation } from './operation.ts'

/** Of a list longer than this the text shows the end. */
const elementsToldMax = 6

export function quoted(element: Element): string {
  return typeof element === 'number' ? String(element) : JSON.stringify(element)
}

export function listText(elements: readonly Element[]): string {
  if (elements.length <= elementsToldMax) return `[${elements.map(quoted).join(', ')}]`
  const end = elements.slice(-elementsToldMax).map(quoted).join(', ')
  return `[… ${elements.length - elementsToldMax} more, ${end}]`
}

/** One line: client, time, operation and outcome. */
export function operationText(operation: HistoryOperation): string {
  const { client, start, end, outcome, level, node, micro } = operation
  const time = end === undefined ? `from ${start}` : `${start} to ${end}`
  const place = node === undefined ? '' : ` at ${node}`
  const kind = level === 'snapshot' ? ', any replica' : ''
  return `${client}${place}, ${time}${kind}, ${outcome}: ${micro.map(microText).join('; ')}`
}

function microText(micro: MicroOperation): string {
  switch (micro.kind) {
    case 'append':
      return `append ${quoted(micro.element)} to ${micro.key}`
    case 'read': {
      if (micro.elements === undefined) return `read ${micro.key}`
      const from = micro.after === 0 ? '' : ` from index ${micro.after}`
      return `read ${micro.key}${from} as ${listText(micro.elements)}`
    }
    case 'write':
      return `write version ${micro.version} of ${micro.key}`
    case 'latest':
      return `latest of ${micro.key} is ${micro.version === undefined ? 'none' : `version ${micro.version}`}`
    case 'get':
      return `version ${micro.version} of ${micro.key} is ${micro.isPresent ? 'there' : 'absent'}`
    case 'range': {
      const { key, from, to, versions } = micro
      const stretch = `versions of ${key} from ${from}${to === undefined ? '' : ` to ${to}`}`
      return versions === undefined
        ? stretch
        : `${stretch} are ${listText(versions.map(({ version }) => version))}`
    }
  }
}

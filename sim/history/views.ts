/**
 * The view that each operation had of other operations, per list: its own appends taken away again. A
 * transaction that contradicts itself is found here.
 */
import type { Anomalies } from './anomaly.ts'
import { listText, quoted } from './words.ts'
import type { Element, History, MicroOperation } from './operation.ts'

/** A stretch of a list as one operation saw it. */
export interface ListView {
  readonly operation: number
  readonly key: string
  readonly after: number
  readonly elements: readonly Element[]
  readonly isEnd: boolean
}

export interface Views {
  /** As they were answered, own appends included. */
  readonly raw: readonly ListView[]
  /** Without own appends: the first one of each list in each operation. */
  readonly outer: readonly ListView[]
}

type ListRead = MicroOperation & { readonly kind: 'read'; readonly elements: readonly Element[] }

/** Views of operations that ended well. */
export function buildViews(history: History, anomalies: Anomalies): Views {
  const raw: ListView[] = []
  const outer: ListView[] = []
  for (const [operation, { micro, outcome }] of history.entries()) {
    if (outcome !== 'ok') continue
    const own = new Map<string, Element[]>()
    const known = new Map<string, ListView>()
    for (const one of micro) {
      if (one.kind === 'append') remember(own, one.key, one.element)
      if (!isListRead(one)) continue
      const { key, after, elements, isEnd } = one
      raw.push({ operation, key, after, elements, isEnd })
      const view = outerView(operation, one, own.get(key) ?? [], anomalies)
      const before = known.get(key)
      if (before === undefined) {
        known.set(key, view)
        outer.push(view)
      } else checkRepeated(operation, before, view, anomalies)
    }
  }
  return { raw, outer }
}

function isListRead(micro: MicroOperation): micro is ListRead {
  return micro.kind === 'read' && micro.elements !== undefined
}

function remember(own: Map<string, Element[]>, key: string, element: Element): void {
  const list = own.get(key)
  if (list === undefined) own.set(key, [element])
  else list.push(element)
}

/** A read after own appends must end with them; one before must be without. */
function outerView(
  operation: number,
  read: ListRead,
  own: readonly Element[],
  anomalies: Anomalies,
): ListView {
  const { key, after, elements, isEnd } = read
  if (own.length === 0) return { operation, key, after, elements, isEnd }
  const others = elements.filter((element) => !own.includes(element))
  if (!isEnd) return { operation, key, after, elements: others, isEnd }
  const length = Math.min(own.length, elements.length)
  const end = elements.slice(elements.length - length)
  const isWhole = length === own.length || after > 0
  const isOwn = end.every((element, i) => element === own[own.length - length + i])
  if (isWhole && isOwn) {
    return { operation, key, after, elements: elements.slice(0, elements.length - length), isEnd }
  }
  anomalies.add({
    name: 'internal',
    operations: [operation],
    sentences: [
      `T1 had appended ${own.map(quoted).join(', ')} to ${key} and then read ${listText(elements)}, which does not end with that.`,
    ],
  })
  return { operation, key, after, elements: others, isEnd: false }
}

function checkRepeated(
  operation: number,
  before: ListView,
  view: ListView,
  anomalies: Anomalies,
): void {
  if (before.after !== view.after || !before.isEnd || !view.isEnd) return
  const isSame =
    before.elements.length === view.elements.length &&
    before.elements.every((element, i) => element === view.elements[i])
  if (isSame) return
  anomalies.add({
    name: 'internal',
    operations: [operation],
    sentences: [
      `T1 read ${view.key} as ${listText(before.elements)} and then, but for its own appends, as ${listText(view.elements)}.`,
    ],
  })
}

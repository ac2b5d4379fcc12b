/**
 * Histories as JSON lines, one object an operation, for checkers outside and from them:
 *
 *   {"client":"c1","op":"append","key":"x","value":5,"start":1,"end":2,"outcome":"ok"}
 *   {"client":"c1","op":"read","key":"x","value":[5],"start":3,"end":4,"outcome":"ok","level":"any"}
 *   {"client":"c2","op":"txn","value":[["append","x",6],["r","x",[5,6]]],"start":3,"end":9,"outcome":"ok"}
 *
 * Micro-operations: ["append", key, element, index?], ["r", key, [element …] or null, {"after": index,
 * "more": true}?], ["w", key, version, value?], ["latest", key, version or null, value?],
 * ["get", key, version, whether it is there, value?], ["range", key, from, to or null,
 * [[version, value?] …] or null]. An `unknown` outcome has no `end`.
 */
import type { Element, History, HistoryOperation, MicroOperation } from './operation.ts'

export function historyText(history: History): string {
  return history.map((operation) => `${encodeOperation(operation)}\n`).join('')
}

export function encodeOperation(operation: HistoryOperation): string {
  const { client, micro, level, group, node, start, end, outcome } = operation
  const [first] = micro
  const single = micro.length === 1 && first !== undefined ? encodeSingle(first) : undefined
  const what = single ?? { op: 'txn', value: micro.map(encodeTuple) }
  const timed = { start, ...(end === undefined ? {} : { end }), outcome }
  const rest = {
    ...(level === 'snapshot' ? { level } : {}),
    ...(group === undefined ? {} : { group }),
  }
  return JSON.stringify({
    client,
    ...what,
    ...timed,
    ...rest,
    ...(node === undefined ? {} : { node }),
  })
}

/** The short form of an operation that is but one append, or one read of a whole list. */
function encodeSingle(micro: MicroOperation): object | undefined {
  if (micro.kind === 'append' && micro.index === undefined) {
    return { op: 'append', key: micro.key, value: micro.element }
  }
  if (micro.kind !== 'read' || micro.after !== 0 || !micro.isEnd) return undefined
  return { op: 'read', key: micro.key, value: micro.elements ?? null }
}

function encodeTuple(micro: MicroOperation): readonly unknown[] {
  switch (micro.kind) {
    case 'append': {
      const { key, element, index } = micro
      return index === undefined ? ['append', key, element] : ['append', key, element, index]
    }
    case 'read': {
      const { key, elements = null, after, isEnd } = micro
      if (after === 0 && isEnd) return ['r', key, elements]
      return ['r', key, elements, { after, more: !isEnd }]
    }
    case 'write':
      return ['w', micro.key, micro.version, ...toList(micro.value)]
    case 'latest':
      return ['latest', micro.key, micro.version ?? null, ...toList(micro.value)]
    case 'get':
      return ['get', micro.key, micro.version, micro.isPresent, ...toList(micro.value)]
    case 'range': {
      const { key, from, to = null, versions } = micro
      const seen = versions?.map(({ version, value }) => [version, ...toList(value)]) ?? null
      return ['range', key, from, to, seen]
    }
  }
}

function toList(value: Element | undefined): readonly Element[] {
  return value === undefined ? [] : [value]
}

/**
 * The lists of nodes that a node tells to clients ⇄ positional arrays: `[set, epoch, [[node, url, own word], …]]`. The
 * decoder bounds them: a list that is longer than a cluster may be is no list of a node.
 */
import { nodeCountMax, nodeUrlCharsMax, setCountMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import * as field from '../fields.ts'
import type { ListedNode, SetList } from './client-message.ts'

export function packSetList({ set, epoch, nodes }: SetList): Packable {
  return [set, epoch, nodes.map(({ node, url, isOwnWord }) => [node, url, isOwnWord === true])]
}

/** Throws `MalformedError`. One list of each set, and each node once in it. */
export function readSetLists(lists: readonly unknown[]): readonly SetList[] {
  if (lists.length > setCountMax) throw new field.MalformedError('too many sets are listed')
  const sets = lists.map(readSetList)
  if (new Set(sets.map(({ set }) => set)).size < sets.length) {
    throw new field.MalformedError('a set is listed twice')
  }
  return sets
}

function readSetList(value: unknown): SetList {
  const [number, version, members] = field.list(value, 'list of nodes', 3)
  const set = field.count(number, 'set')
  const epoch = field.count(version, 'epoch', 1)
  const nodes = field.list(members, 'nodes')
  if (set >= setCountMax) throw new field.MalformedError('there is no set of this number')
  if (nodes.length === 0 || nodes.length > nodeCountMax) {
    throw new field.MalformedError(`a set has 1 to ${nodeCountMax} nodes`)
  }
  const listed = nodes.map(readListedNode)
  if (new Set(listed.map(({ node }) => node)).size < listed.length) {
    throw new field.MalformedError('a set lists a node twice')
  }
  return { set, epoch, nodes: listed }
}

function readListedNode(value: unknown): ListedNode {
  const [id, address, isOwn] = field.list(value, 'listed node', 3)
  const node = field.node(id)
  const url = field.text(address, 'address of a node', nodeUrlCharsMax)
  return field.flag(isOwn, 'own word') ? { node, url, isOwnWord: true } : { node, url }
}

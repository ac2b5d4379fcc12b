/** The page that tells how a group's log works agrees with the code, and each check finds its fault. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import * as rules from './page-rules.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = join(root, 'src/replication')
const page = readFileSync(join(folder, 'README.md'), 'utf8')
const kinds = rules.kindsIn(
  ['src/replication/message.ts', 'src/lease/message.ts'].map((path) =>
    readFileSync(join(root, path), 'utf8'),
  ),
)
const scriptOf = (name: string): string =>
  readFileSync(join(root, 'test/scripts', `${name}.txt`), 'utf8')

test('the table of messages has every kind of message, and no other', () => {
  expect(kinds.length).toBe(41)
  expect(rules.checkMessages(page, kinds)).toEqual([])
})

test('the handler of each message is in the file that its row names', () => {
  expect(rules.checkHandlers(page, folder)).toEqual([])
})

test('each function that a diagram names is in its file', () => {
  expect(rules.checkFunctions(page, folder)).toEqual([])
})

test('the arrows of each sequence are messages that its golden script sends in that order', () => {
  const sequences = rules.diagramsIn(page).filter(({ kind }) => kind === 'sequenceDiagram')
  expect(sequences.length).toBe(6)
  expect(rules.checkSequences(page, kinds, scriptOf)).toEqual([])
})

test('the table of states has every state of the diagram', () => {
  const named = rules.tableUnder(page, "A proposal's states").map(([state = '']) => state)
  const drawn = rules.statesIn(page).map((state) => state.replace('_', ' '))
  expect(drawn.toSorted()).toEqual(named.toSorted())
  expect(drawn).toContain('awaiting holders')
})

test('the page links every golden script, and is short', () => {
  for (const script of readdirSync(join(root, 'test/scripts'))) {
    expect(page).toContain(`(../../test/scripts/${script})`)
  }
  expect(page.split(/\s+/).length).toBeLessThanOrEqual(2_350)
  expect(page.split('\n').filter((line) => line.length > 110)).toEqual([])
})

const planted = `
## Messages

| kind | from, to | answer | handler |
| --- | --- | --- | --- |
| \`accept\` | a, b | \`acepted\` | \`onAccept\`, \`acceptance.ts\` |
| \`accept\` | a, b | | \`onAcept\`, \`acceptance.ts\` |
| \`nack\` | a, b | | \`onAccept\`, \`gone.ts\` |

[script](../../test/scripts/story.txt)

\`\`\`mermaid
sequenceDiagram
  client->>n1: write
  Note over n1: submit (submit.ts), submt (submit.ts)
  n1->>n2: accept #2
  n2->>n1: acepted #2
  n3->>n1: accepted #2
  n2->>n1: accepted #2
  n1-xn3: committed #2
\`\`\`
`

const story = [
  '    0.001 n1   -> n2  accept #2',
  '    0.002 n2   -> n1  accepted #2',
  '    0.002 n3   -> n1  accepted #2',
  '    0.003 n1   -> n3  committed #2',
].join('\n')

test('a message without a row, and a row without its message, are found', () => {
  expect(rules.checkMessages(planted, ['accept', 'accepted'])).toEqual([
    'accepted: has no row',
    'nack: is no message',
    'accept: has two rows',
    'acepted: is no answer',
  ])
})

test('a function that is not in its file, and a file that is not there, are found', () => {
  expect(rules.checkHandlers(planted, folder)).toEqual([
    '`accept`: no onAcept in acceptance.ts',
    '`nack`: no onAccept in gone.ts',
  ])
  expect(rules.checkFunctions(planted, folder)).toEqual(['no submt in submit.ts'])
})

test('an arrow that is no message, comes out of order, or is not lost is found', () => {
  expect(rules.checkSequences(planted, ['accept', 'accepted', 'committed'], () => story)).toEqual([
    'story: no message in "n2->>n1: acepted #2"',
    'story: nobody sends "n2->>n1: accepted #2" there',
    'story: nobody sends "n1-xn3: committed #2" there',
  ])
})

import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { UnfinishedMessages, type Unfinished } from '../../src/adapters/unfinished.ts'

/** A connection whose reader gets chunks before later listeners do. */
class Fed extends EventEmitter {
  isEnded = false
  readonly #watched: Unfinished

  constructor(messages: UnfinishedMessages) {
    super()
    this.on('data', (chunk: Buffer) => {
      if (chunk.includes('.')) this.#watched.finished()
    })
    this.#watched = messages.watch(this, () => {
      this.isEnded = true
      this.#watched.release()
    })
  }

  /** A `.` ends a message. */
  feed(text: string): void {
    this.emit('data', Buffer.from(text))
  }

  close(): void {
    this.#watched.release()
  }
}

test('DOOR-3: above the bound the connection goes whose message began first, and no other', () => {
  const messages = new UnfinishedMessages(10)
  const [first, second, third] = [new Fed(messages), new Fed(messages), new Fed(messages)]
  first.feed('aaaa')
  second.feed('bbb')
  first.feed('.')
  expect(messages.bytes).toBe(3)
  first.feed('aaaa')
  expect([messages.bytes, first.isEnded, second.isEnded]).toEqual([7, false, false])
  third.feed('cccc')
  expect([first.isEnded, second.isEnded, third.isEnded]).toEqual([false, true, false])
  expect(messages.bytes).toBe(8)
  third.feed('cccccccccccc')
  expect([first.isEnded, third.isEnded]).toEqual([true, true])
  expect(messages.bytes).toBe(0)
})

test('the count leaves out whole messages and closed connections', () => {
  const messages = new UnfinishedMessages(10)
  const [first, second] = [new Fed(messages), new Fed(messages)]
  for (let sent = 0; sent < 20; sent++) first.feed('a whole message.')
  second.feed('half')
  expect(messages.bytes).toBe(4)
  second.close()
  second.feed('late')
  expect(messages.bytes).toBe(0)
  expect(first.isEnded).toBe(false)
})

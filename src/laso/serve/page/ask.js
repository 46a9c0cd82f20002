// Requests to the server, and what is said of them.

const say = (id, text) => { document.getElementById(id).textContent = text }

export const element = (id) => document.getElementById(id)

export class Failed extends Error {}

const GONE = 'The server does not answer. Start laso serve again, and open the address that it prints.'

let waiting = 0

// Tells tests, and styles, whether an answer is awaited.
const count = (more) => { document.documentElement.dataset.asking = waiting += more }

count(0)

export async function ask(path, content) {
  count(1)
  try {
    return await answered(path, content)
  } finally {
    setTimeout(() => count(-1)) // when the answer is shown
  }
}

async function answered(path, content) {
  const options = content === undefined ? {} : {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(content)
  }
  let reply
  try {
    reply = await fetch(path, options)
  } catch {
    throw new Failed(GONE)
  }
  let answer
  try {
    answer = await reply.json()
  } catch {
    throw new Failed(`The server has failed (${reply.status}); its terminal says more.`)
  }
  if (reply.status === 403) throw new Failed(`${answer.error}. ${GONE}`)
  if (!reply.ok) throw new Failed(answer.error)
  return answer
}

// Runs something that asks, and shows its error in place of an earlier one.
export async function trying(doing, text = '') {
  say('status', text)
  try {
    const done = await doing()
    say('problem', '')
    return done
  } catch (error) {
    if (!(error instanceof Failed)) throw error
    say('problem', error.message)
  } finally {
    say('status', '')
  }
}

export const later = (doing, wait = 60) => {
  let timer
  return () => { clearTimeout(timer); timer = setTimeout(doing, wait) }
}

export function options(select, texts, values) {
  select.replaceChildren(...texts.map((text, i) => new Option(text, values ? values[i] : i)))
}

export function save(name, content, kind) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([content], { type: kind }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

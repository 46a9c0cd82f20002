// Lessons: what was learned, and what it has changed.
import { ask, element, trying } from './ask.js'

function table(weights) {
  const made = document.createElement('table')
  made.innerHTML = '<thead><tr><th scope="col">feature</th><th scope="col">label</th><th scope="col">before</th><th scope="col">after</th></tr></thead>'
  const body = made.createTBody()
  for (const { name, label, before, after } of weights) {
    const row = body.insertRow()
    for (const cell of [name, label, before.toFixed(2), after.toFixed(2)]) row.insertCell().textContent = cell
  }
  return made
}

function titled(title, html) {
  const part = document.createElement('div')
  const head = document.createElement('h3')
  head.textContent = title
  part.className = 'answer'
  part.innerHTML = html
  part.prepend(head)
  return part
}

export function showLessons(number) {
  element('undo').disabled = !number
  element('undo').textContent = number ? `Undo (${number})` : 'Undo'
}

async function learn(request, output, look) {
  await trying(async () => {
    const strategy = element('strategy').value
    const told = await ask('teach', { ...request(), strategy, output })
    const said = document.createElement('p')
    said.textContent = `${told.changed} weights have changed; the answer is ` +
      (told.learned ? 'the one that was taught.' : 'not yet the one that was taught: learn it again.')
    const rows = document.createElement('div')
    rows.className = 'scroll'
    rows.tabIndex = 0
    rows.setAttribute('role', 'region')
    rows.setAttribute('aria-label', 'Weights that changed')
    rows.append(table(told.weights))
    element('lesson').replaceChildren(said, titled('Before', told.before), titled('After', told.after), rows)
    showLessons(told.lessons)
    await look()
  }, 'learning ...')
}

export function prepareTeaching(request, chosen, gold, look) {
  element('learn').addEventListener('click', () => learn(request, chosen(), look))
  element('learn-gold').addEventListener('click', () => learn(request, gold(), look))
  element('undo').addEventListener('click', () => trying(async () => {
    const told = await ask('undo', {})
    showLessons(told.lessons)
    element('lesson').textContent = 'The last lesson is undone.'
    await look()
  }))
  element('save').addEventListener('click', () => trying(async () => {
    const told = await ask('save', { name: element('name').value })
    element('lesson').textContent = `Saved as ${told.name} (${told.bytes} bytes).`
  }, 'saving ...'))
}

import { describe, expect, it } from 'vitest';
import { createRouter } from './solution';

const find = createRouter({
  home: '/',
  files: '/files/*',
  user: '/users/:id',
  me: '/users/me',
  post: '/users/:id/posts/:post',
  about: '/about/',
});

describe('router', () => {
  it('finds routes made of words', () => {
    expect(find('/')).toEqual({ name: 'home', params: {} });
    expect(find('/about')).toEqual({ name: 'about', params: {} });
    expect(find('/users/me/')).toEqual({ name: 'me', params: {} });
  });

  it('reads parameters', () => {
    expect(find('/users/42')).toEqual({ name: 'user', params: { id: '42' } });
    expect(find('/users/7/posts/hello')).toEqual({ name: 'post', params: { id: '7', post: 'hello' } });
  });

  it('decodes parameters', () => {
    expect(find('/users/a%20b%2Fc')).toEqual({ name: 'user', params: { id: 'a b/c' } });
    expect(find('/users/%E0%A4%A')).toBeNull();
  });

  it('takes the rest as it is', () => {
    expect(find('/files/a%20b')).toEqual({ name: 'files', params: { '*': 'a%20b' } });
    expect(find('/files/2024/may/lake.jpg')).toEqual({ name: 'files', params: { '*': '2024/may/lake.jpg' } });
    expect(find('/files')).toBeNull();
  });

  it('ignores queries and fragments', () => {
    expect(find('/users/42?tab=posts/1')).toEqual({ name: 'user', params: { id: '42' } });
    expect(find('/about#team?')).toEqual({ name: 'about', params: {} });
  });

  it('finds nothing for other paths', () => {
    expect(find('/users')).toBeNull();
    expect(find('/users/')).toBeNull();
    expect(find('/users/1/posts')).toBeNull();
    expect(find('/users/1/posts/2/3')).toBeNull();
    expect(find('/About')).toBeNull();
  });

  it('prefers words to parameters, and parameters to the rest, from the left', () => {
    const best = createRouter({ rest: '/*', both: '/:a/:b', right: '/:a/list', left: '/shop/:b', deep: '/shop/*' });
    expect(best('/shop/list')?.name).toBe('left');
    expect(best('/other/list')?.name).toBe('right');
    expect(best('/other/thing')?.name).toBe('both');
    expect(best('/shop/a/b')?.name).toBe('deep');
    expect(best('/one')?.name).toBe('rest');
  });

  it('takes the first of two equal routes', () => {
    const equal = createRouter({ one: '/:a', two: '/:b' });
    expect(equal('/x')).toEqual({ name: 'one', params: { a: 'x' } });
  });

  it('refuses patterns that make no sense', () => {
    expect(() => createRouter({ bad: '/a/*/b' })).toThrow(new Error('/a/*/b: the rest must be the last segment'));
    expect(() => createRouter({ bad: '/:id/x/:id' })).toThrow(new Error('/:id/x/:id: id is there twice'));
  });
});

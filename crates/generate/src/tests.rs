mod compare;
mod faulty;

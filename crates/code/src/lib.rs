//! Python extraction from model text and a sound normal form of programs. Pure.
